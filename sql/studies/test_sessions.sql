-- Some sessions of a study's log with their queries in order: those whose keyed md5 is smallest, numbered by it.
WITH chosen_sessions AS (
    SELECT
        "user",
        "session",
        row_number() OVER (
            ORDER BY md5_number(concat_ws(chr(10), 'test session', "user", "session")), "user", "session"
        ) - 1 AS session_number
    FROM (SELECT DISTINCT "user", "session" FROM kept_sessions)
    QUALIFY session_number < $sessions
)

SELECT
    chosen_sessions.session_number,
    kept_sessions.query
FROM kept_sessions
JOIN chosen_sessions
    ON kept_sessions."user" = chosen_sessions."user" AND kept_sessions."session" = chosen_sessions."session"
ORDER BY chosen_sessions.session_number, kept_sessions.place
