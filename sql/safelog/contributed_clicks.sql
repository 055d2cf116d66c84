-- What users contribute to the table of clicks: their pairs of queries that were just released; where a public list says
-- which urls may be released, those of its urls alone.
SELECT
    capped_clicks."user",
    capped_clicks.query,
    capped_clicks.url
FROM capped_clicks
SEMI JOIN released_queries ON capped_clicks.query = released_queries.query
WHERE
    $any_url
    OR capped_clicks.url IN (SELECT releasable_urls.url FROM releasable_urls)
