-- Every clicked pair of a log, and how many users clicked it.
SELECT
    query,
    url,
    count(DISTINCT "user")::BIGINT AS users
FROM cleaned_clicks
GROUP BY query, url
