-- The texts of some rows of a public list, in the order in which they were chosen.
SELECT listed_items.* EXCLUDE (file_row_number)
FROM chosen_rows
JOIN listed_items ON chosen_rows.list_row = listed_items.file_row_number
ORDER BY chosen_rows.place
