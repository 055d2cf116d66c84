-- At most items_per_user of the distinct items in each user's events: those whose keyed md5 is smallest.
-- The key is public and the same for everybody: the choice is a function of one user's rows, which is all that the
-- guarantee needs; the md5 only makes it fair to late and rare items. A line break occurs in no normalised text.
SELECT * EXCLUDE (row_text)
FROM (
    SELECT DISTINCT
        *,
        concat_ws(chr(10), *COLUMNS(*)) AS row_text
    FROM events
)
QUALIFY
    row_number() OVER (PARTITION BY "user" ORDER BY md5_number($key || row_text) >> 64, row_text) <= $items_per_user
