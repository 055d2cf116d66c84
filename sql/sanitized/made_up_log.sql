-- The rows of made-up users, counted from 1, with the texts of their pairs.
SELECT
    made_up.user_id + 1 AS "user",
    counted_items.query,
    counted_items.url,
    made_up.events AS "count",
    $month AS "month"
FROM made_up
JOIN named_pairs ON made_up.place = named_pairs.place
JOIN counted_items ON named_pairs.item_id = counted_items.item_id
