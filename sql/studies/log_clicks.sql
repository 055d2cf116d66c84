-- Every clicked pair of a log: how many users clicked it, how often, and the best place at which it stood.
SELECT
    query,
    url,
    count(DISTINCT "user")::BIGINT AS users,
    count(*)::BIGINT AS events,
    min("rank")::BIGINT AS best_rank
FROM cleaned_clicks
GROUP BY query, url
ORDER BY query, url
