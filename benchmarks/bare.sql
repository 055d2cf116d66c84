-- The peer task in bare SQL, from our cleaned input and with our per-user rule (sql/safelog/capped_queries.sql): how many users
-- hold each query among their first queries_per_user distinct ones. The task's limit is small, so that min with a number
-- needs little memory for everybody.
WITH first_typed AS (
    SELECT
        "user",
        query,
        min("time") AS typed_at
    FROM read_parquet($cleaned_log)
    GROUP BY "user", query
),

capped AS (
    SELECT unnest(min({'typed_at': typed_at, 'query': query}, $queries_per_user)) AS kept
    FROM first_typed
    GROUP BY "user"
)

SELECT
    kept.query AS query,
    count(*) AS users
FROM capped
GROUP BY kept.query
