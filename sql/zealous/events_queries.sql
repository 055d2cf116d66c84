-- Each search.
SELECT
    "user",
    query
FROM cleaned_queries
