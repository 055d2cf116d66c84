-- The users who typed a query that was planted for one of them.
SELECT DISTINCT "user"
FROM cleaned_queries
WHERE query = $query
