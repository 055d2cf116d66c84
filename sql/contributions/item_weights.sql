-- The weights of counted_items in the order of its numbers, for the noise.
SELECT weight
FROM counted_items
ORDER BY item_id
