-- The queries that a person typed and nobody else did.
SELECT query
FROM person_queries
WHERE users = 1
ORDER BY query
