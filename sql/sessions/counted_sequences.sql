-- How many users hold each sequence, numbered in the order of its queries: numbers of queries follow their texts, so two
-- sequences have the same order whatever others hold.
SELECT
    *,
    row_number() OVER (ORDER BY q1, q2, q3, q4, q5, q6, q7, q8, q9, q10) - 1 AS item_id
FROM (
    SELECT
        * EXCLUDE ("user"),
        count(*)::BIGINT AS held_by
    FROM contributions
    GROUP BY ALL
)
