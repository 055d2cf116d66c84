-- How many users hold each (query, url) pair whose query was just released.
SELECT
    released_ids.query_id,
    capped_clicks.url,
    count(*)::BIGINT AS users
FROM capped_clicks
JOIN released_ids ON capped_clicks.query = released_ids.query
GROUP BY released_ids.query_id, capped_clicks.url
ORDER BY released_ids.query_id, capped_clicks.url
