-- The first queries_per_user distinct queries of each user, by (time first typed, bytes).
-- Reads only that user's rows: adding or removing one user changes at most queries_per_user rows, all of them that user's.
WITH first_typed AS (
    SELECT
        "user",
        query,
        min("time") AS typed_at
    FROM cleaned_queries
    GROUP BY "user", query
)

SELECT
    "user",
    query
FROM first_typed
QUALIFY row_number() OVER (PARTITION BY "user" ORDER BY typed_at, query) <= $queries_per_user
