-- Each search of a user in the order of time, without those that repeat the one before: what a client mines of its log.
-- Rows of one second come in the order of their texts, at clients and here. Reads only that user's rows.
SELECT
    "user",
    query,
    place
FROM (
    SELECT
        "user",
        query,
        row_number() OVER passing AS place,
        lag(query) OVER passing AS earlier_query
    FROM cleaned_log
    WINDOW passing AS (PARTITION BY "user" ORDER BY "time", query, coalesce(url, ''))
)
WHERE earlier_query IS DISTINCT FROM query
