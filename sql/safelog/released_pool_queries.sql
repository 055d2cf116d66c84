-- The released queries that are in the public pool.
SELECT released_queries.query
FROM released_queries
SEMI JOIN pool ON released_queries.query = pool.query
