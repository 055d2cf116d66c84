-- Each time a user typed two different queries one after the other within a session.
SELECT
    "user",
    query,
    next_query
FROM following_queries
WHERE
    next_query <> query
    AND pause <= to_minutes($session_gap_minutes)
