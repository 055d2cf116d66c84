-- The different queries of a month, in the order of their numbers.
SELECT DISTINCT query
FROM cleaned_queries
ORDER BY query
