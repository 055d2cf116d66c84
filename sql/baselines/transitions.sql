-- The steps from one query to another in one session that k users made, or that have k events where events are what is
-- asked for; with exact counts.
SELECT
    query,
    next_query,
    CASE WHEN $print_events THEN count(*) ELSE count(DISTINCT "user") END::BIGINT AS printed
FROM following_queries
WHERE next_query <> query AND pause <= to_minutes($session_gap_minutes)
GROUP BY query, next_query
HAVING CASE WHEN $count_events THEN count(*) ELSE count(DISTINCT "user") END >= $k
ORDER BY printed DESC, query, next_query
