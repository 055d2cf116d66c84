-- Each address that a user opened from results, in the order of time, without those that repeat the one before.
SELECT
    "user",
    url,
    place
FROM (
    SELECT
        "user",
        url,
        row_number() OVER passing AS place,
        lag(url) OVER passing AS earlier_url
    FROM cleaned_clicks
    WINDOW passing AS (PARTITION BY "user" ORDER BY "time", query, url)
)
WHERE earlier_url IS DISTINCT FROM url
