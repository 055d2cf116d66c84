-- Each kept session as numbers: whose it is, and its queries in order. `is_simple`: its user has no other session and
-- no query twice in it, so that its subsequences are all different.
WITH numbered_users AS (
    SELECT
        "user",
        row_number() OVER (ORDER BY "user")::INTEGER - 1 AS user_id
    FROM (SELECT DISTINCT "user" FROM kept_sessions)
),

sessions AS (
    SELECT
        numbered_users.user_id,
        kept_sessions."session",
        list(session_queries.query_id ORDER BY kept_sessions.place) AS queries,
        count(DISTINCT session_queries.query_id) = count(*) AS has_no_repeats
    FROM kept_sessions
    JOIN numbered_users ON kept_sessions."user" = numbered_users."user"
    JOIN session_queries ON kept_sessions.query = session_queries.query
    GROUP BY numbered_users.user_id, kept_sessions."session"
)

SELECT
    user_id,
    queries,
    has_no_repeats AND count(*) OVER (PARTITION BY user_id) = 1 AS is_simple
FROM sessions
