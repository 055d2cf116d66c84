-- The counted subsequences in the order of their numbers, so that a seeded draw can be repeated.
SELECT *
FROM counted_subsequences
ORDER BY q1, q2, q3, q4, q5, q6, q7, q8, q9, q10
