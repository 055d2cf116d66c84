-- How many users hold each (query, url) pair whose query was just released and whose url is on the public list.
SELECT
    released_ids.query_id,
    url_list.url_id,
    count(*)::BIGINT AS users
FROM capped_clicks
JOIN released_ids ON capped_clicks.query = released_ids.query
JOIN url_list ON capped_clicks.url = url_list.url
GROUP BY released_ids.query_id, url_list.url_id
ORDER BY released_ids.query_id, url_list.url_id
