-- The distinct pairs of different queries that each user typed one after the other within a session.
SELECT DISTINCT
    "user",
    query,
    next_query
FROM following_queries
WHERE
    next_query <> query
    AND pause <= to_minutes($session_gap_minutes)
