-- The sessions that at least k different users made.
SELECT
    "session",
    count(DISTINCT "user")::BIGINT AS printed
FROM whole_sessions
GROUP BY "session"
HAVING count(DISTINCT "user") >= $k
ORDER BY printed DESC, "session"
