-- Each click: the query and the address. A made-up log repeats a pair's texts in every row, so that very long ones, which
-- nobody else has, are left out.
SELECT
    "user",
    query,
    url
FROM cleaned_clicks
WHERE strlen(query) + strlen(url) <= 2000
