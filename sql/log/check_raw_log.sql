-- What the expectations of raw_log read: one row of counts about one month, and no value of the log.
SELECT
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'raw_log'
    ) AS columns,
    count(*) AS rows,
    count(*) FILTER (WHERE "user" IS NULL OR "user" = '') AS rows_without_user,
    count(*) FILTER (WHERE query IS NULL OR query = '') AS rows_without_query,
    count(*) FILTER (
        WHERE "time" IS NULL OR "time" < $month_start OR "time" >= $month_end
    ) AS rows_outside_month,
    count(*) FILTER (WHERE rank < 0) AS rows_with_negative_rank
FROM raw_log
