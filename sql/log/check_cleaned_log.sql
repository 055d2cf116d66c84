-- What the expectations of cleaned_log read: one row of counts, and no value of the log.
-- The signs of a query that was never normalised are those that the normalisation removes whatever the language:
-- a capital letter, a control character for a space, a space at either end, two spaces in a row.
SELECT
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'cleaned_log'
    ) AS columns,
    count(*) FILTER (WHERE "user" IS NULL OR "user" = '') AS rows_without_user,
    count(*) FILTER (WHERE query IS NULL OR query = '') AS rows_without_query,
    count(*) FILTER (WHERE regexp_matches(query, '[A-Z\t\n\r]|^ | $|  ')) AS rows_not_normalised,
    count(*) FILTER (
        WHERE "time" IS NULL OR "time" < $month_start OR "time" >= $month_end
    ) AS rows_outside_month,
    count(*) FILTER (WHERE url = '') AS rows_with_empty_url
FROM cleaned_log
