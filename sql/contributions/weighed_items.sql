-- As counted_items, with the sum of what its users give to an item as its weight. One user's rows are distinct, which the
-- door has checked, and their weights even: the user moves these sums by no more than one whole weight, in L2.
SELECT
    * EXCLUDE (item_text),
    row_number() OVER (ORDER BY item_text) - 1 AS item_id
FROM (
    SELECT
        * EXCLUDE ("user", user_weight),
        concat_ws(chr(10), *COLUMNS(* EXCLUDE ("user", user_weight))) AS item_text,
        sum(user_weight)::BIGINT AS weight
    FROM weighed_contributions
    GROUP BY ALL
)
