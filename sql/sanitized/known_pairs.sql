-- The pairs of an earlier made-up log, and how often it has them: what is public of their size.
SELECT
    query,
    url,
    sum("count")::BIGINT AS users
FROM earlier_rows
GROUP BY query, url
ORDER BY query, url
