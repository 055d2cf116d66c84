-- What the expectations about a table of contributions read: one row of counts, and no value of the log.
-- max_per_user and repeated_rows are what the guarantee stands on: how much one user can move the counts.
WITH items AS (
    SELECT
        *,
        count(*) AS times_held
    FROM contributions
    GROUP BY ALL
),

users AS (
    SELECT
        sum(times_held) AS held,
        sum(times_held - 1) AS repeated
    FROM items
    GROUP BY "user"
)

SELECT
    $table_name AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'contributions'
    ) AS columns,
    coalesce(max(held), 0)::BIGINT AS max_per_user,
    coalesce(sum(repeated), 0)::BIGINT AS repeated_rows,
    (
        (SELECT count(*) FROM contributions)
        - (SELECT count(*) FROM contributions WHERE COLUMNS(*) <> '')
    ) AS incomplete_rows
FROM users
