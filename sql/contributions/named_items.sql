-- The texts of drawn items beside their noisy counts.
SELECT
    counted_items.* EXCLUDE (item_id, held_by),
    drawn_items.users
FROM drawn_items
JOIN counted_items ON drawn_items.item_id = counted_items.item_id
