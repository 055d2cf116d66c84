-- What the expectations of capped_log read: one row of counts a table, and no value of the log.
-- max_per_user and repeated_rows are what the guarantee stands on: how much one user can move the counts. A month is
-- charged by itself, so no row may be of another.
SELECT
    'queries' AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'capped_queries'
    ) AS columns,
    coalesce((SELECT max(held) FROM (SELECT count(*) AS held FROM capped_queries GROUP BY "user")), 0) AS max_per_user,
    count(*) - (SELECT count(*) FROM (SELECT DISTINCT "user", query FROM capped_queries)) AS repeated_rows,
    count(*) FILTER (
        WHERE "user" IS NULL OR query IS NULL OR query = ''
    ) AS incomplete_rows,
    count(*) FILTER (
        WHERE "time" IS NULL OR "time" < $month_start OR "time" >= $month_end
    ) AS rows_outside_month,
    0::BIGINT AS self_transitions
FROM capped_queries
UNION ALL
SELECT
    'clicks' AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'capped_clicks'
    ) AS columns,
    coalesce((SELECT max(held) FROM (SELECT count(*) AS held FROM capped_clicks GROUP BY "user")), 0) AS max_per_user,
    count(*) - (SELECT count(*) FROM (SELECT DISTINCT "user", query, url FROM capped_clicks)) AS repeated_rows,
    count(*) FILTER (
        WHERE "user" IS NULL OR query IS NULL OR url IS NULL OR query = '' OR url = ''
    ) AS incomplete_rows,
    count(*) FILTER (
        WHERE "time" IS NULL OR "time" < $month_start OR "time" >= $month_end
    ) AS rows_outside_month,
    0::BIGINT AS self_transitions
FROM capped_clicks
UNION ALL
SELECT
    'transitions' AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'capped_transitions'
    ) AS columns,
    coalesce((SELECT max(held) FROM (SELECT count(*) AS held FROM capped_transitions GROUP BY "user")), 0) AS max_per_user,
    count(*) - (SELECT count(*) FROM (SELECT DISTINCT "user", query, next_query FROM capped_transitions)) AS repeated_rows,
    count(*) FILTER (
        WHERE "user" IS NULL OR query IS NULL OR next_query IS NULL OR query = '' OR next_query = ''
    ) AS incomplete_rows,
    count(*) FILTER (
        WHERE "time" IS NULL OR "time" < $month_start OR "time" >= $month_end
    ) AS rows_outside_month,
    count(*) FILTER (WHERE query = next_query) AS self_transitions
FROM capped_transitions
