-- The queries of kept sessions with numbers, by text alone: a seeded draw can be repeated, and the order of sequences,
-- which breaks ties in steered selection, is that of their texts whatever others hold.
SELECT
    query,
    (row_number() OVER (ORDER BY query) - 1)::INTEGER AS query_id
FROM (SELECT DISTINCT query FROM kept_sessions)
