-- What the expectations of a public list read of the url list: one row of counts.
SELECT
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'public_list'
    ) AS columns,
    count(*) AS rows,
    count(*) - count(DISTINCT url) AS repeated_texts,
    count(*) FILTER (WHERE url IS NULL OR url = '') AS empty_texts,
    count(*) FILTER (WHERE url_id IS NULL OR url_id < 0)
    + abs(coalesce(max(url_id), -1) + 1 - count(DISTINCT url_id))
    + count(*) - count(DISTINCT url_id) AS missing_numbers
FROM public_list
