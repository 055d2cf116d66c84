-- The distinct queries of each user.
SELECT DISTINCT
    "user",
    query
FROM cleaned_queries
