-- No row, with the columns that items of contributions have.
SELECT * EXCLUDE ("user")
FROM contributions
LIMIT 0
