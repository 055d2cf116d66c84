-- The first transitions_per_user distinct transitions of each user with the time of the second query, by (that time,
-- bytes): two different queries typed one after the other with at most session_gap_minutes between them. Reads only
-- that user's rows.
WITH first_made AS (
    SELECT
        "user",
        query,
        next_query,
        min(next_time) AS "time"
    FROM following_queries
    WHERE
        next_query <> query
        AND pause <= to_minutes($session_gap_minutes)
    GROUP BY "user", query, next_query
)

SELECT
    "user",
    query,
    next_query,
    "time"
FROM first_made
QUALIFY
    row_number() OVER (PARTITION BY "user" ORDER BY "time", query, next_query) <= $transitions_per_user
