-- The queries of kept sessions with numbers, by text, so that a seeded draw can be repeated; nothing that is drawn
-- depends on the numbers.
SELECT
    query,
    (row_number() OVER (ORDER BY query) - 1)::INTEGER AS query_id
FROM (SELECT DISTINCT query FROM kept_sessions)
