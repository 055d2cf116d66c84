-- The first clicks_per_user distinct (query, url) pairs of each user with the time they were first clicked, by (that
-- time, rank, bytes). Reads only that user's rows. A pair's rank is that of its earliest click; a click without a rank
-- comes last.
-- Time and rank are one number, because the least of numbers is found in two thirds of the time of the least of rows.
WITH first_clicked AS (
    SELECT
        "user",
        query,
        url,
        min("time") AS "time",
        min(epoch_us("time")::HUGEINT * 2147483648 + coalesce("rank", 2147483647)) AS clicked_at
    FROM cleaned_clicks
    GROUP BY "user", query, url
)

SELECT
    "user",
    query,
    url,
    "time"
FROM first_clicked
QUALIFY row_number() OVER (PARTITION BY "user" ORDER BY clicked_at, query, url) <= $clicks_per_user
