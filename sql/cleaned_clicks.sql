-- One row a click, by user and time: the rows of the log that name a url (url <> '' leaves nulls out, too).
SELECT
    "user",
    query,
    url,
    "time",
    "rank"
FROM normalised_log
WHERE url <> '' AND query NOT IN ('', '-')
ORDER BY "user", "time"
