-- The clicked pairs that k users share, or that have k events where events are what is asked for; with exact counts.
SELECT
    query,
    url,
    CASE WHEN $print_events THEN count(*) ELSE count(DISTINCT "user") END::BIGINT AS printed
FROM cleaned_clicks
GROUP BY query, url
HAVING CASE WHEN $count_events THEN count(*) ELSE count(DISTINCT "user") END >= $k
ORDER BY printed DESC, query, url
