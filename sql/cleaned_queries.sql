-- One row a search, by user and time. A text that normalises to nothing, or to a dash, is no query.
-- The clicks of one search repeat its row with the same time; all but one of them fall away.
SELECT DISTINCT
    "user",
    query,
    "time"
FROM normalised_log
WHERE query NOT IN ('', '-')
ORDER BY "user", "time"
