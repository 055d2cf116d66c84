-- No row, with the columns that items of counted_items have.
SELECT * EXCLUDE (item_id, held_by)
FROM counted_items
LIMIT 0
