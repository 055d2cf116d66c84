-- Every pair of an earlier and a later query in a session, and how many users have it: a log's own query-flow graph.
SELECT
    earlier.query,
    later.query AS next_query,
    count(DISTINCT earlier."user")::BIGINT AS users
FROM kept_sessions AS earlier
JOIN kept_sessions AS later
    ON earlier."user" = later."user" AND earlier."session" = later."session" AND earlier.place < later.place
GROUP BY earlier.query, later.query
