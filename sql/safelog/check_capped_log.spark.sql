-- As check_capped_log, in one pass over each table whose rows lie by user: first a user's items, then the user.
SELECT
    'queries' AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'capped_queries'
    ) AS columns,
    coalesce(max(held), 0)::BIGINT AS max_per_user,
    coalesce(sum(repeated), 0)::BIGINT AS repeated_rows,
    coalesce(sum(incomplete), 0)::BIGINT AS incomplete_rows,
    coalesce(sum(outside), 0)::BIGINT AS rows_outside_month,
    0::BIGINT AS self_transitions
FROM (
    SELECT
        sum(times) AS held,
        sum(times - 1) AS repeated,
        sum(CASE WHEN "user" IS NULL OR query IS NULL OR query = '' THEN times ELSE 0 END) AS incomplete,
        sum(outside) AS outside
    FROM (
        SELECT
            "user",
            query,
            count(*) AS times,
            count(*) FILTER (WHERE "time" IS NULL OR "time" < $month_start OR "time" >= $month_end) AS outside
        FROM capped_queries
        GROUP BY "user", query
    ) AS items
    GROUP BY "user"
) AS users
UNION ALL
SELECT
    'clicks' AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'capped_clicks'
    ) AS columns,
    coalesce(max(held), 0)::BIGINT AS max_per_user,
    coalesce(sum(repeated), 0)::BIGINT AS repeated_rows,
    coalesce(sum(incomplete), 0)::BIGINT AS incomplete_rows,
    coalesce(sum(outside), 0)::BIGINT AS rows_outside_month,
    0::BIGINT AS self_transitions
FROM (
    SELECT
        sum(times) AS held,
        sum(times - 1) AS repeated,
        sum(
            CASE
                WHEN "user" IS NULL OR query IS NULL OR url IS NULL OR query = '' OR url = '' THEN times
                ELSE 0
            END
        ) AS incomplete,
        sum(outside) AS outside
    FROM (
        SELECT
            "user",
            query,
            url,
            count(*) AS times,
            count(*) FILTER (WHERE "time" IS NULL OR "time" < $month_start OR "time" >= $month_end) AS outside
        FROM capped_clicks
        GROUP BY "user", query, url
    ) AS items
    GROUP BY "user"
) AS users
UNION ALL
SELECT
    'transitions' AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'capped_transitions'
    ) AS columns,
    coalesce(max(held), 0)::BIGINT AS max_per_user,
    coalesce(sum(repeated), 0)::BIGINT AS repeated_rows,
    coalesce(sum(incomplete), 0)::BIGINT AS incomplete_rows,
    coalesce(sum(outside), 0)::BIGINT AS rows_outside_month,
    coalesce(sum(selves), 0)::BIGINT AS self_transitions
FROM (
    SELECT
        sum(times) AS held,
        sum(times - 1) AS repeated,
        sum(
            CASE
                WHEN "user" IS NULL OR query IS NULL OR next_query IS NULL OR query = '' OR next_query = '' THEN times
                ELSE 0
            END
        ) AS incomplete,
        sum(outside) AS outside,
        sum(CASE WHEN query = next_query THEN times ELSE 0 END) AS selves
    FROM (
        SELECT
            "user",
            query,
            next_query,
            count(*) AS times,
            count(*) FILTER (WHERE "time" IS NULL OR "time" < $month_start OR "time" >= $month_end) AS outside
        FROM capped_transitions
        GROUP BY "user", query, next_query
    ) AS items
    GROUP BY "user"
) AS users
