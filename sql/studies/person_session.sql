-- The session of a person that an attacker's accounts repeat: one with a query that as few others as possible typed, with
-- another query beside it if there is such a session, and short. Its times, and the query that is guessed.
WITH pauses AS (
    SELECT
        query,
        "time",
        "time" - lag("time") OVER (ORDER BY "time") AS pause
    FROM cleaned_queries
    WHERE "user" IN (SELECT "user" FROM person)
),

numbered AS (
    SELECT
        query,
        "time",
        count(*) FILTER (WHERE pause > to_minutes($session_gap_minutes)) OVER (ORDER BY "time") AS session_number
    FROM pauses
)

SELECT
    min(numbered."time") AS first_time,
    max(numbered."time") AS last_time,
    arg_min(numbered.query, (person_queries.users, numbered.query)) AS guessed
FROM numbered
INNER JOIN person_queries ON numbered.query = person_queries.query
GROUP BY numbered.session_number
ORDER BY
    min(person_queries.users),
    count(DISTINCT numbered.query) = 1,
    count(DISTINCT numbered.query),
    first_time
LIMIT 1
