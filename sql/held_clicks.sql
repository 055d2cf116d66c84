-- The distinct (query, url) pairs that each user clicked.
SELECT DISTINCT
    "user",
    query,
    url
FROM cleaned_clicks
