-- One row a search. The clicks of one search repeat its row with the same time; all but one of them fall away.
SELECT DISTINCT
    "user",
    query,
    "time"
FROM cleaned_log
