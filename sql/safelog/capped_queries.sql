-- The first queries_per_user distinct queries of each user with the time they were first typed, by (that time, bytes).
-- Reads only that user's rows: adding or removing one user changes at most queries_per_user rows, all of them that user's.
-- Who holds no more than that keeps everything, and only the others' queries are ranked. min with a number is DuckDB's
-- alone; it sets aside room for that many rows per user, which is less than a user has who is ranked. The plain form is
-- capped_queries.spark.sql.
WITH first_typed AS (
    SELECT
        "user",
        query,
        min("time") AS "time"
    FROM cleaned_log
    GROUP BY "user", query
),

over_limit AS (
    SELECT "user"
    FROM first_typed
    GROUP BY "user"
    HAVING count(*) > $queries_per_user
)

SELECT
    first_typed."user",
    first_typed.query,
    first_typed."time"
FROM first_typed
ANTI JOIN over_limit ON first_typed."user" = over_limit."user"
UNION ALL
SELECT
    "user",
    kept.query,
    kept."time"
FROM (
    SELECT
        first_typed."user",
        unnest(min({'time': first_typed."time", 'query': first_typed.query}, $queries_per_user)) AS kept
    FROM first_typed
    SEMI JOIN over_limit ON first_typed."user" = over_limit."user"
    GROUP BY first_typed."user"
)
