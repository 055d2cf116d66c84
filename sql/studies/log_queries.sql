-- Every query of a log: how many users typed it, and how often.
SELECT
    query,
    count(DISTINCT "user")::BIGINT AS users,
    count(*)::BIGINT AS events
FROM cleaned_queries
GROUP BY query
ORDER BY query
