-- One row a click: the rows of the log that name a url.
SELECT
    "user",
    query,
    url,
    "time",
    "rank"
FROM cleaned_log
WHERE url IS NOT NULL
