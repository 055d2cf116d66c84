-- Algorithm 1 of Safelog as printed, lines 3 to 5: queries rarer than min_frequency go first, over all users, and only
-- then each user's first queries_per_user events are kept. The filter is why this is for studies alone (gap G1).
WITH frequent AS (
    SELECT query
    FROM cleaned_queries
    GROUP BY query
    HAVING count(*) >= $min_frequency
),

kept AS (
    SELECT cleaned_queries.query
    FROM cleaned_queries
    JOIN frequent ON cleaned_queries.query = frequent.query
    QUALIFY
        row_number() OVER (
            PARTITION BY cleaned_queries."user" ORDER BY cleaned_queries."time", cleaned_queries.query
        ) <= $queries_per_user
),

counted AS (
    SELECT
        query,
        count(*)::BIGINT AS events
    FROM kept
    GROUP BY query
)

SELECT
    coalesce(counted.query, pool.query) AS query,
    coalesce(counted.events, 0)::BIGINT AS events
FROM counted
FULL OUTER JOIN pool ON counted.query = pool.query
ORDER BY 1
