-- The clicks that each user may contribute: those of first_clicks, without their times.
SELECT
    "user",
    query,
    url
FROM first_clicks
