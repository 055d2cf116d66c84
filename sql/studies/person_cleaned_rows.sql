-- The rows of one person in the cleaned log.
SELECT *
FROM cleaned_log
WHERE "user" IN (SELECT "user" FROM person)
