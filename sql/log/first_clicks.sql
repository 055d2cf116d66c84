-- The first clicks_per_user distinct (query, url) pairs of each user with the time they were first clicked, by (that
-- time, rank, bytes). Reads only that user's rows. A pair's rank is that of its earliest click; a click without a rank
-- comes last.
-- Time and rank are one number, because the least of numbers is found in two thirds of the time of the least of rows.
-- Only who has more than the limit is ranked, as in safelog/capped_queries; the plain form is first_clicks.spark.sql.
WITH first_clicked AS (
    SELECT
        "user",
        query,
        url,
        min("time") AS "time",
        min(epoch_us("time")::HUGEINT * 2147483648 + coalesce("rank", 2147483647)) AS clicked_at
    FROM cleaned_clicks
    GROUP BY "user", query, url
),

over_limit AS (
    SELECT "user"
    FROM first_clicked
    GROUP BY "user"
    HAVING count(*) > $clicks_per_user
)

SELECT
    first_clicked."user",
    first_clicked.query,
    first_clicked.url,
    first_clicked."time"
FROM first_clicked
ANTI JOIN over_limit ON first_clicked."user" = over_limit."user"
UNION ALL
SELECT
    "user",
    kept.query,
    kept.url,
    kept."time"
FROM (
    SELECT
        first_clicked."user",
        unnest(
            min(
                {
                    'clicked_at': first_clicked.clicked_at,
                    'query': first_clicked.query,
                    'url': first_clicked.url,
                    'time': first_clicked."time"
                },
                $clicks_per_user
            )
        ) AS kept
    FROM first_clicked
    SEMI JOIN over_limit ON first_clicked."user" = over_limit."user"
    GROUP BY first_clicked."user"
)
