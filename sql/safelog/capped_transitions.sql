-- The first transitions_per_user distinct transitions of each user with the time of the second query, by (that time,
-- bytes): two different queries typed one after the other with at most session_gap_minutes between them. Reads only
-- that user's rows. Only who has more is ranked, as in capped_queries; the plain form is capped_transitions.spark.sql.
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
),

over_limit AS (
    SELECT "user"
    FROM first_made
    GROUP BY "user"
    HAVING count(*) > $transitions_per_user
)

SELECT
    first_made."user",
    first_made.query,
    first_made.next_query,
    first_made."time"
FROM first_made
ANTI JOIN over_limit ON first_made."user" = over_limit."user"
UNION ALL
SELECT
    "user",
    kept.query,
    kept.next_query,
    kept."time"
FROM (
    SELECT
        first_made."user",
        unnest(
            min(
                {'time': first_made."time", 'query': first_made.query, 'next_query': first_made.next_query},
                $transitions_per_user
            )
        ) AS kept
    FROM first_made
    SEMI JOIN over_limit ON first_made."user" = over_limit."user"
    GROUP BY first_made."user"
)
