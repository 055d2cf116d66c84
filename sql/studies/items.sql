-- Every item of a table of events, with its users and events, numbered by text.
SELECT
    * EXCLUDE (item_text),
    row_number() OVER (ORDER BY item_text) - 1 AS item_id
FROM (
    SELECT
        * EXCLUDE ("user"),
        concat_ws(chr(10), *COLUMNS(* EXCLUDE ("user"))) AS item_text,
        count(DISTINCT "user")::BIGINT AS held_by,
        count(*)::BIGINT AS happened
    FROM events
    GROUP BY ALL
)
