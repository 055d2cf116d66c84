-- How many users hold two named pairs together: each pair of places of named_pairs once, the smaller one first.
WITH held AS (
    SELECT
        contributions."user",
        named_pairs.place
    FROM contributions
    NATURAL JOIN counted_items
    JOIN named_pairs ON counted_items.item_id = named_pairs.item_id
)

SELECT
    one.place AS first_place,
    other.place AS second_place,
    count(*)::BIGINT AS held_by
FROM held AS one
JOIN held AS other ON one."user" = other."user" AND one.place < other.place
GROUP BY one.place, other.place
ORDER BY one.place, other.place
