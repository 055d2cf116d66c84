-- How many users hold each transition between two queries that were just released.
SELECT
    before.query_id AS query_id,
    after.query_id AS next_query_id,
    count(*)::BIGINT AS users
FROM capped_transitions
JOIN released_ids AS before ON capped_transitions.query = before.query
JOIN released_ids AS after ON capped_transitions.next_query = after.query
GROUP BY before.query_id, after.query_id
ORDER BY before.query_id, after.query_id
