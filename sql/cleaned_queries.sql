-- One row a search: the clicks of one search repeat its row with the same time, and all but one of them fall away.
SELECT DISTINCT
    "user",
    query,
    "time"
FROM normalised_log
ORDER BY "user", "time"
