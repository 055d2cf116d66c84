-- The items of a study by number.
SELECT * EXCLUDE (item_id)
FROM counted_items
ORDER BY item_id
