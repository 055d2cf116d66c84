-- How often each counted subsequence is held, with its number: rows of Spark's tables have none of their own, so they are
-- numbered by what they say.
SELECT
    row_number() OVER (ORDER BY q1, q2, q3, q4, q5, q6, q7, q8, q9, q10) - 1 AS row_number,
    held_by
FROM counted_subsequences
