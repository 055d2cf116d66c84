-- The rows of the users in some tenths of a month's log, so that a study can measure on people whose rows it did not
-- use. A user's tenth is a keyed md5 of the user's id: whole users, never single rows, or one person would be in both.
-- The remainder is taken of 64 bits: of all 128 it takes ten times as long as the rest.
SELECT *
FROM whole_log
WHERE (md5_number('held out ' || "user") >> 64)::UBIGINT % 10 BETWEEN $first_tenth AND $last_tenth
