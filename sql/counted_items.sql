-- How many users hold each item of a table of contributions. Items are numbered in no particular order.
SELECT
    *,
    row_number() OVER () - 1 AS item_id
FROM (
    SELECT
        * EXCLUDE ("user"),
        count(*)::BIGINT AS held_by
    FROM contributions
    GROUP BY ALL
)
