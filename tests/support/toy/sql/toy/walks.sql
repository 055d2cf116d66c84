-- The first walks_per_visitor distinct walks of each visitor, by their texts. Reads only that visitor's rows.
SELECT
    "user",
    walk
FROM (SELECT DISTINCT "user", walk FROM sent)
QUALIFY row_number() OVER (PARTITION BY "user" ORDER BY walk) <= $walks_per_visitor
