-- Known items that nobody holds get a place among counted_items, behind those that somebody does, so that their texts are
-- found like those of all others.
SELECT
    *,
    0 AS weight
FROM unheld_items
