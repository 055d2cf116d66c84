-- How often each user clicked each (query, url) pair, as numbers. For studies alone: a pair that one user alone holds
-- is left out, which looks at the other users (gap G4).
WITH counted AS (
    SELECT
        "user",
        query,
        url,
        count(*)::BIGINT AS events
    FROM cleaned_clicks
    GROUP BY "user", query, url
    QUALIFY count(*) OVER (PARTITION BY query, url) >= 2
)

SELECT
    "user",
    query,
    url,
    events,
    dense_rank() OVER (ORDER BY "user") - 1 AS user_id,
    dense_rank() OVER (ORDER BY query, url) - 1 AS pair_id,
    dense_rank() OVER (ORDER BY query) - 1 AS query_id
FROM counted
