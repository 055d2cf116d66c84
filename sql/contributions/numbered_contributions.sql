-- Contributions as numbers, for methods that weigh each user's items: who holds which item of counted_items.
WITH numbered_users AS (
    SELECT
        "user",
        row_number() OVER (ORDER BY "user") - 1 AS user_id
    FROM (SELECT DISTINCT "user" FROM contributions)
)

SELECT
    numbered_users.user_id,
    counted_items.item_id
FROM contributions
NATURAL JOIN counted_items
JOIN numbered_users ON contributions."user" = numbered_users."user"
