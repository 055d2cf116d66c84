-- How often each counted subsequence is held, with its row in the table.
SELECT
    rowid AS row_number,
    held_by
FROM counted_subsequences
