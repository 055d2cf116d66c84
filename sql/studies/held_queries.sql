-- What users hold, where an item is a query: who typed it, and in how many searches.
SELECT
    "user",
    query AS item,
    count(*)::BIGINT AS searches
FROM cleaned_queries
GROUP BY "user", query
