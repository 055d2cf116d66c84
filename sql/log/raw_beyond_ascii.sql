-- The rows of raw_log with a letter beyond ASCII in query or url: few in an English log, and the only ones whose texts
-- need more than sql/normalise_*.sql.
SELECT
    "user",
    query,
    "time",
    "rank",
    url
FROM raw_log
WHERE
    strlen(query) <> length(query)
    OR strlen(url) <> length(url)
