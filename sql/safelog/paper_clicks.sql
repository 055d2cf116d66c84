-- Algorithm 1 of Safelog as printed: clicks on released queries among each user's first clicks_per_user clicks, after
-- the frequency filter. Only observed pairs appear (gap G2); for studies alone.
WITH frequent AS (
    SELECT query
    FROM cleaned_queries
    GROUP BY query
    HAVING count(*) >= $min_frequency
),

kept AS (
    SELECT
        cleaned_clicks.query,
        cleaned_clicks.url
    FROM cleaned_clicks
    JOIN frequent ON cleaned_clicks.query = frequent.query
    QUALIFY
        row_number() OVER (
            PARTITION BY cleaned_clicks."user"
            ORDER BY cleaned_clicks."time", cleaned_clicks."rank", cleaned_clicks.query, cleaned_clicks.url
        ) <= $clicks_per_user
)

SELECT
    released_ids.query_id,
    kept.url,
    count(*)::BIGINT AS events
FROM kept
JOIN released_ids ON kept.query = released_ids.query
GROUP BY released_ids.query_id, kept.url
ORDER BY released_ids.query_id, kept.url
