-- The first queries_per_user distinct queries of each user with the time they were first typed, by (that time, bytes).
-- Reads only that user's rows: adding or removing one user changes at most queries_per_user rows, all of them that user's.
WITH first_typed AS (
    SELECT
        "user",
        query,
        min("time") AS "time"
    FROM cleaned_log
    GROUP BY "user", query
)

SELECT
    "user",
    query,
    "time"
FROM first_typed
QUALIFY row_number() OVER (PARTITION BY "user" ORDER BY "time", query) <= $queries_per_user
