-- The queries of the domain in the order of their numbers.
SELECT query
FROM domain_queries
ORDER BY query_id
