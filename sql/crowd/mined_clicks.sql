-- Each click of a user in the order of time, query and address, without those that repeat the one before.
SELECT
    "user",
    query,
    url,
    place
FROM (
    SELECT
        "user",
        query,
        url,
        row_number() OVER passing AS place,
        lag(query) OVER passing AS earlier_query,
        lag(url) OVER passing AS earlier_url
    FROM cleaned_clicks
    WINDOW passing AS (PARTITION BY "user" ORDER BY "time", query, url)
)
WHERE (earlier_query, earlier_url) IS DISTINCT FROM (query, url)
