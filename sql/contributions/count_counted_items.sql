-- How many different items somebody holds.
SELECT count(*) AS items
FROM counted_items
