-- The peer task in bare SQL, from our cleaned input and with our per-user rule (sql/safelog/capped_queries.sql): how many users
-- hold each query among their first queries_per_user distinct ones.
WITH first_typed AS (
    SELECT
        "user",
        query,
        min("time") AS typed_at
    FROM read_parquet($cleaned_log)
    GROUP BY "user", query
),

capped AS (
    SELECT query
    FROM first_typed
    QUALIFY row_number() OVER (PARTITION BY "user" ORDER BY typed_at, query) <= $queries_per_user
)

SELECT
    query,
    count(*) AS users
FROM capped
GROUP BY query
