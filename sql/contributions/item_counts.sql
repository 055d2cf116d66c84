-- The counts of counted_items in the order of its numbers, for the noise.
SELECT held_by
FROM counted_items
ORDER BY item_id
