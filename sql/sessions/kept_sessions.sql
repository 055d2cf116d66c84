-- The first sessions of each user that have two queries or more, each cut to its first queries: one row a query, in
-- order. Reads only that user's rows and, with in_domain, the public queries of domain_queries.
-- A session ends where more than session_gap_minutes pass. Searches of one time are in one session, in the order of
-- their bytes. Rules in this order: the rows of one search (one per click, all of one time) are one, queries outside the
-- domain fall away, a query right after itself (the next page of results) falls away where collapse_repeats says so,
-- sessions of one query fall away, then the first sessions are kept, then each is cut.
WITH pauses AS (
    SELECT
        "user",
        query,
        "time",
        "time" - lag("time") OVER (PARTITION BY "user" ORDER BY "time") AS pause
    FROM cleaned_log
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
        "user",
        query,
        "time",
        session_number,
        lag(query) OVER in_order AS query_before,
        lag("time") OVER in_order AS time_before
    FROM numbered
    WHERE NOT $in_domain OR query IN (SELECT query FROM domain_queries)
    WINDOW in_order AS (PARTITION BY "user", session_number ORDER BY "time", query)
),

placed AS (
    SELECT
        "user",
        query,
        session_number,
        row_number() OVER (PARTITION BY "user", session_number ORDER BY "time", query) AS place,
        count(*) OVER (PARTITION BY "user", session_number) AS session_length
    FROM followed
    WHERE
        query_before IS NULL
        OR query_before <> query
        OR (NOT $collapse_repeats AND time_before <> "time")
),

several AS (
    SELECT
        "user",
        query,
        place,
        dense_rank() OVER (PARTITION BY "user" ORDER BY session_number) AS session_rank
    FROM placed
    WHERE session_length >= 2
)

SELECT
    "user",
    session_rank::INTEGER AS "session",
    place::INTEGER AS place,
    query
FROM several
WHERE
    session_rank <= $sessions_per_user
    AND place <= $queries_per_session
