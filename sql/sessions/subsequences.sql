-- Every subsequence of every session, as often as it is held: its queries in order, as wide as the longest there can
-- be, and -1 behind the last one. `places` has a row for each choice of places in a session, NULL behind the last.
SELECT
    numbered_sessions.user_id AS "user",
    numbered_sessions.is_simple,
    numbered_sessions.queries[places.p1] AS q1,
    numbered_sessions.queries[places.p2] AS q2,
    coalesce(numbered_sessions.queries[places.p3], -1) AS q3,
    coalesce(numbered_sessions.queries[places.p4], -1) AS q4,
    coalesce(numbered_sessions.queries[places.p5], -1) AS q5,
    coalesce(numbered_sessions.queries[places.p6], -1) AS q6,
    coalesce(numbered_sessions.queries[places.p7], -1) AS q7,
    coalesce(numbered_sessions.queries[places.p8], -1) AS q8,
    coalesce(numbered_sessions.queries[places.p9], -1) AS q9,
    coalesce(numbered_sessions.queries[places.p10], -1) AS q10
FROM numbered_sessions, places
WHERE places.last_place <= len(numbered_sessions.queries)
