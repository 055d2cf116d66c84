-- Who holds some items of counted_items, as numbers: items by the places in which they were asked for. All rows of one
-- user together, as what a user gives to an item follows from all that the user holds.
WITH wanted AS (
    SELECT
        counted_items.* EXCLUDE (item_id, weight),
        wanted_items.place
    FROM counted_items
    JOIN wanted_items ON counted_items.item_id = wanted_items.item_id
),

held AS (
    SELECT
        contributions."user",
        wanted.place
    FROM contributions
    NATURAL JOIN wanted
),

numbered_users AS (
    SELECT
        "user",
        row_number() OVER (ORDER BY "user") - 1 AS user_id
    FROM (SELECT DISTINCT "user" FROM held)
)

SELECT
    numbered_users.user_id,
    held.place
FROM held
JOIN numbered_users ON held."user" = numbered_users."user"
ORDER BY numbered_users.user_id, held.place
