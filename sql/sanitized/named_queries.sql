-- The query of each named pair, as a number, in the order of their places.
SELECT dense_rank() OVER (ORDER BY counted_items.query) - 1 AS query_id
FROM named_pairs
JOIN counted_items ON named_pairs.item_id = counted_items.item_id
ORDER BY named_pairs.place
