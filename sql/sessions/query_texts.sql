-- The texts of some queries, by number.
SELECT
    session_queries.query_id,
    session_queries.query
FROM session_queries
JOIN wanted_queries ON session_queries.query_id = wanted_queries.query_id
ORDER BY session_queries.query_id
