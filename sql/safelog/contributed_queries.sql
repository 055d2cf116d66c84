-- What users contribute to the table of queries: at most queries_per_user rows each, nobody's twice.
SELECT
    "user",
    query
FROM capped_queries
