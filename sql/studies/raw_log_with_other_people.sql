-- A month's raw rows without those of some users, and with the rows of made-up accounts, each of which repeats the same
-- rows: what a log would be without a person, or with accounts that an attacker opened.
SELECT *
FROM raw_log
WHERE "user" NOT IN (SELECT "user" FROM people_left_out)
UNION ALL BY NAME
SELECT copied_rows.* REPLACE ('made-up account ' || numbers.number AS "user")
FROM copied_rows
CROSS JOIN (SELECT unnest(range($accounts)) AS number) AS numbers
