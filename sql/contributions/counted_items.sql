-- How many users hold each item of a table of contributions: its weight, one for each. Numbered by text alone: a seeded
-- draw can be repeated, and what breaks ties between two items of a user is an order that nobody else may decide.
SELECT
    * EXCLUDE (item_text),
    row_number() OVER (ORDER BY item_text) - 1 AS item_id
FROM (
    SELECT
        * EXCLUDE ("user"),
        concat_ws(chr(10), *COLUMNS(* EXCLUDE ("user"))) AS item_text,
        count(*)::BIGINT AS weight
    FROM contributions
    GROUP BY ALL
)
