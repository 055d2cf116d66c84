-- One part of a month's raw rows, or all rows but that part: what a study tests on, and what it draws from. A user's
-- part is a keyed md5 of the user's id, so that whole users are held out. By record, which leaks, a row's part hangs on
-- the row as well: then one person is in both. The remainder is taken of 64 bits: of all 128 it takes ten times as long.
SELECT *
FROM raw_log
WHERE
    (
        (
            md5_number(
                'part ' || CASE
                    WHEN $by_record THEN concat_ws(chr(31), "user", "time", query, url)
                    ELSE "user"
                END
            ) >> 64
        )::UBIGINT % $parts = $part
    ) = $tested
