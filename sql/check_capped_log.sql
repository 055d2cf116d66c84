-- What the expectations of capped_log read: one row of counts a table, and no value of the log.
-- max_per_user and repeated_rows are what the guarantee stands on: how much one user can move the counts.
WITH queries_of_user AS (
    SELECT
        count(*) AS held,
        count(DISTINCT query) AS different,
        count(*) FILTER (WHERE "user" IS NULL OR query IS NULL OR query = '') AS incomplete
    FROM capped_queries
    GROUP BY "user"
),

clicks_of_user AS (
    SELECT
        count(*) AS held,
        count(DISTINCT (query, url)) AS different,
        count(*) FILTER (
            WHERE "user" IS NULL OR query IS NULL OR url IS NULL OR query = '' OR url = ''
        ) AS incomplete
    FROM capped_clicks
    GROUP BY "user"
),

transitions_of_user AS (
    SELECT
        count(*) AS held,
        count(DISTINCT (query, next_query)) AS different,
        count(*) FILTER (
            WHERE "user" IS NULL OR query IS NULL OR next_query IS NULL OR query = '' OR next_query = ''
        ) AS incomplete,
        count(*) FILTER (WHERE query = next_query) AS standing_still
    FROM capped_transitions
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
    coalesce(sum(held - different), 0)::BIGINT AS repeated_rows,
    coalesce(sum(incomplete), 0)::BIGINT AS incomplete_rows,
    0::BIGINT AS self_transitions
FROM queries_of_user
UNION ALL
SELECT
    'clicks' AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'capped_clicks'
    ) AS columns,
    coalesce(max(held), 0)::BIGINT AS max_per_user,
    coalesce(sum(held - different), 0)::BIGINT AS repeated_rows,
    coalesce(sum(incomplete), 0)::BIGINT AS incomplete_rows,
    0::BIGINT AS self_transitions
FROM clicks_of_user
UNION ALL
SELECT
    'transitions' AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'capped_transitions'
    ) AS columns,
    coalesce(max(held), 0)::BIGINT AS max_per_user,
    coalesce(sum(held - different), 0)::BIGINT AS repeated_rows,
    coalesce(sum(incomplete), 0)::BIGINT AS incomplete_rows,
    coalesce(sum(standing_still), 0)::BIGINT AS self_transitions
FROM transitions_of_user
