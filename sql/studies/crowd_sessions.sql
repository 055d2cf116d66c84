-- A log in which each session is a user, for logs that have no ids of users: the id is that of the user and the number
-- of the session. A session ends where more than session_gap_minutes pass.
SELECT
    "user" || ' ' || sum(opens::INTEGER) OVER (PARTITION BY "user" ORDER BY "time") AS "user",
    query,
    "time",
    "rank",
    url
FROM (
    SELECT
        *,
        coalesce("time" - lag("time") OVER (PARTITION BY "user" ORDER BY "time") > to_minutes($session_gap_minutes), true)
            AS opens
    FROM whole_log
)
