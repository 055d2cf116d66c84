-- For each row of an earlier release, in the order it is given, the number of the same item in counted_items; NULL where
-- nobody holds it now. The columns that both tables have are the item's own.
SELECT item_id
FROM known_items
NATURAL LEFT JOIN counted_items
ORDER BY position
