-- Every step of a log from one query to another in one session: how many users made it, and how often.
SELECT
    query,
    next_query,
    count(DISTINCT "user")::BIGINT AS users,
    count(*)::BIGINT AS events
FROM following_queries
WHERE next_query <> query AND pause <= to_minutes($session_gap_minutes)
GROUP BY query, next_query
ORDER BY query, next_query
