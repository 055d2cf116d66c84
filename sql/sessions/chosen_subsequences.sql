-- Some rows of the counted subsequences, in their order.
SELECT counted_subsequences.* EXCLUDE (held_by)
FROM counted_subsequences
JOIN chosen_rows ON counted_subsequences.rowid = chosen_rows.row_number
ORDER BY chosen_rows.row_number
