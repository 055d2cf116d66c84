-- The rows of one person in the raw log, which accounts may repeat.
SELECT raw_log.*
FROM raw_log
WHERE "user" IN (SELECT "user" FROM person)
