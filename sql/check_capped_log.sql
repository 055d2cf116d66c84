-- What the expectations of capped_log read: one row of counts a table, and no value of the log.
-- max_per_user and repeated_rows are what the guarantee stands on: how much one user can move the counts.
WITH query_items AS (
    SELECT
        "user",
        count(*) AS times_held,
        "user" IS NULL OR query IS NULL OR query = '' AS incomplete
    FROM capped_queries
    GROUP BY "user", query
),

click_items AS (
    SELECT
        "user",
        count(*) AS times_held,
        "user" IS NULL OR query IS NULL OR url IS NULL OR query = '' OR url = '' AS incomplete
    FROM capped_clicks
    GROUP BY "user", query, url
),

transition_items AS (
    SELECT
        "user",
        count(*) AS times_held,
        "user" IS NULL OR query IS NULL OR next_query IS NULL OR query = '' OR next_query = '' AS incomplete,
        query = next_query AS standing_still
    FROM capped_transitions
    GROUP BY "user", query, next_query
),

users_of_queries AS (
    SELECT
        sum(times_held) AS held,
        sum(times_held - 1) AS repeated,
        count(*) FILTER (WHERE incomplete) AS incomplete
    FROM query_items
    GROUP BY "user"
),

users_of_clicks AS (
    SELECT
        sum(times_held) AS held,
        sum(times_held - 1) AS repeated,
        count(*) FILTER (WHERE incomplete) AS incomplete
    FROM click_items
    GROUP BY "user"
),

users_of_transitions AS (
    SELECT
        sum(times_held) AS held,
        sum(times_held - 1) AS repeated,
        count(*) FILTER (WHERE incomplete) AS incomplete,
        count(*) FILTER (WHERE standing_still) AS standing_still
    FROM transition_items
    GROUP BY "user"
)

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
    0::BIGINT AS self_transitions
FROM users_of_queries
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
    0::BIGINT AS self_transitions
FROM users_of_clicks
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
    coalesce(sum(standing_still), 0)::BIGINT AS self_transitions
FROM users_of_transitions
