-- What users hold, where an item is a whole history.
SELECT
    "user",
    history AS item,
    searches
FROM whole_histories
