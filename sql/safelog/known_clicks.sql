-- The clicks of an earlier release whose query was released again; where a public list says which urls may be released,
-- those of its urls alone. Public rows and lists decide, and nothing of the log.
SELECT earlier_rows.*
FROM earlier_rows
SEMI JOIN released_queries ON earlier_rows.query = released_queries.query
WHERE
    $any_url
    OR earlier_rows.url IN (SELECT releasable_urls.url FROM releasable_urls)
ORDER BY earlier_rows.query, earlier_rows.url
