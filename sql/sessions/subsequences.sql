-- Every subsequence of every session, as often as it is held: its queries in order, as wide as the longest there can
-- be, and -1 behind the last one. `places` has a row for each choice of places in a session, NULL behind the last.
-- The first query comes from session_starts, so that whoever wants a part of the first queries makes no others.
SELECT
    session_starts.user_id AS "user",
    session_starts.is_simple,
    session_starts.first_query AS q1,
    session_starts.queries[places.p2] AS q2,
    coalesce(session_starts.queries[places.p3], -1) AS q3,
    coalesce(session_starts.queries[places.p4], -1) AS q4,
    coalesce(session_starts.queries[places.p5], -1) AS q5,
    coalesce(session_starts.queries[places.p6], -1) AS q6,
    coalesce(session_starts.queries[places.p7], -1) AS q7,
    coalesce(session_starts.queries[places.p8], -1) AS q8,
    coalesce(session_starts.queries[places.p9], -1) AS q9,
    coalesce(session_starts.queries[places.p10], -1) AS q10
FROM session_starts
JOIN places ON session_starts.first_place = places.p1
WHERE places.last_place <= array_length(session_starts.queries)
