-- One row a search, by user and time.
-- The clicks of one search repeat its row with the same time; all but one of them fall away.
SELECT DISTINCT
    "user",
    query,
    "time"
FROM normalised_log
ORDER BY "user", "time"
