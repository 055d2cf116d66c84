-- The first clicks_per_user click records of each user, repeats included, as pairs with how often each occurs.
WITH first_records AS (
    SELECT
        query,
        url
    FROM cleaned_clicks
    QUALIFY
        row_number() OVER (PARTITION BY "user" ORDER BY "time", "rank" NULLS LAST, query, url) <= $clicks_per_user
)

SELECT
    query,
    url,
    count(*)::BIGINT AS events
FROM first_records
GROUP BY query, url
ORDER BY query, url
