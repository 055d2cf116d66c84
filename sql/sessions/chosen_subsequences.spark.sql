-- Some rows of the counted subsequences, in their order; numbered as in subsequence_counts.
SELECT numbered.* EXCLUDE (held_by, row_number)
FROM (
    SELECT
        *,
        row_number() OVER (ORDER BY q1, q2, q3, q4, q5, q6, q7, q8, q9, q10) - 1 AS row_number
    FROM counted_subsequences
) AS numbered
JOIN chosen_rows ON numbered.row_number = chosen_rows.row_number
ORDER BY chosen_rows.row_number
