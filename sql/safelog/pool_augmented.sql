-- Every query somebody typed with the number of its users, and every pool query nobody typed with zero.
WITH typed AS (
    SELECT
        query,
        count(*)::BIGINT AS users
    FROM capped_queries
    GROUP BY query
)

SELECT
    coalesce(typed.query, pool.query) AS query,
    coalesce(typed.users, 0)::BIGINT AS users,
    pool.query IS NOT NULL AS in_pool
FROM typed
FULL OUTER JOIN pool ON typed.query = pool.query
