-- As contributions/weighed_items, of sequences, which are numbered in the order of their queries: numbers of queries follow
-- their texts, so two sequences have the same order whatever others hold.
SELECT
    *,
    row_number() OVER (ORDER BY q1, q2, q3, q4, q5, q6, q7, q8, q9, q10) - 1 AS item_id
FROM (
    SELECT
        * EXCLUDE ("user", user_weight),
        sum(user_weight)::BIGINT AS weight
    FROM weighed_contributions
    GROUP BY ALL
)
