-- Each click: the query and the address.
SELECT
    "user",
    query,
    url
FROM cleaned_clicks
