-- The rows of a public list that are not known already, in the order of its file: their row, and the number of the same
-- item in counted_items, NULL where nobody holds it.
SELECT
    file_row_number AS list_row,
    item_id
FROM listed_items
NATURAL LEFT JOIN counted_items
NATURAL ANTI JOIN (SELECT * EXCLUDE (position) FROM known_items) AS known
ORDER BY file_row_number
