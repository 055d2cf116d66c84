-- Each user's sessions: the queries of one in order, with the number of searches it was. Reads only that user's rows.
-- A session ends where more than session_gap_minutes pass; searches of one time are in one session, in the order of
-- their bytes. A query right after itself, such as the next page of results, falls away. A session may be one query.
WITH pauses AS (
    SELECT
        "user",
        query,
        "time",
        "time" - lag("time") OVER (PARTITION BY "user" ORDER BY "time") AS pause
    FROM cleaned_queries
),

numbered AS (
    -- Rows of one time are peers in this order, so all of them get the number of their session.
    SELECT
        "user",
        query,
        "time",
        count(*) FILTER (WHERE pause > to_minutes($session_gap_minutes)) OVER (
            PARTITION BY "user" ORDER BY "time"
        ) AS session_number
    FROM pauses
),

followed AS (
    SELECT
        *,
        lag(query) OVER (PARTITION BY "user", session_number ORDER BY "time", query) AS query_before
    FROM numbered
)

SELECT
    "user",
    list(query ORDER BY "time", query) FILTER (WHERE query_before IS NULL OR query_before <> query) AS "session",
    count(*)::BIGINT AS searches
FROM followed
GROUP BY "user", session_number
