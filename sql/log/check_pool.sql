-- What the expectations of a public list read of the pool: one row of counts.
SELECT
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'public_list'
    ) AS columns,
    count(*) AS rows,
    count(*) - count(DISTINCT query) AS repeated_texts,
    count(*) FILTER (WHERE query IS NULL OR query = '') AS empty_texts,
    count(*) FILTER (WHERE pool_id IS NULL OR pool_id < 0)
    + abs(coalesce(max(pool_id), -1) + 1 - count(DISTINCT pool_id))
    + count(*) - count(DISTINCT pool_id) AS missing_numbers
FROM public_list
