-- What the expectations of the kept sessions read: one row of counts, and no value of the log.
-- max_items_per_user is what the guarantee stands on: the subsequences that a user's sessions have, before repeats are
-- taken out. A session of n queries has 2^n - 1 - n of two or more queries.
WITH sessions AS (
    SELECT
        "user",
        "session",
        count(*) AS queries,
        count(DISTINCT place) AS places,
        min(place) AS first_place,
        max(place) AS last_place
    FROM kept_sessions
    GROUP BY "user", "session"
),

users AS (
    SELECT
        count(*) AS sessions,
        sum(CASE WHEN $pairs_only THEN queries * (queries - 1) // 2 ELSE (1::BIGINT << least(queries, 60)) - 1 - queries END) AS items
    FROM sessions
    GROUP BY "user"
)

SELECT
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'kept_sessions'
    ) AS columns,
    coalesce((SELECT max(sessions) FROM users), 0)::BIGINT AS max_sessions_per_user,
    coalesce((SELECT max(items) FROM users), 0)::BIGINT AS max_items_per_user,
    coalesce((SELECT max(queries) FROM sessions), 0)::BIGINT AS max_queries_per_session,
    (SELECT count(*) FROM sessions WHERE queries < 2)::BIGINT AS sessions_of_one_query,
    (
        SELECT count(*) FROM sessions
        WHERE first_place <> 1 OR last_place <> queries OR places <> queries
    )::BIGINT AS sessions_out_of_order,
    (
        SELECT count(*) FROM kept_sessions
        WHERE "user" IS NULL OR "session" IS NULL OR place IS NULL OR query IS NULL OR "user" = '' OR query = ''
    )::BIGINT AS incomplete_rows
