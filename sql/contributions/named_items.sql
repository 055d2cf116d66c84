-- The texts of drawn items beside what was drawn of them.
SELECT
    counted_items.* EXCLUDE (item_id, weight),
    drawn_items.* EXCLUDE (item_id)
FROM drawn_items
JOIN counted_items ON drawn_items.item_id = counted_items.item_id
