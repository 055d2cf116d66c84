-- How many users hold each ordered pair of different queries of the domain, by the domain's numbers.
SELECT
    first_query.query_id AS before_id,
    second_query.query_id AS after_id,
    count(*)::BIGINT AS held_by
FROM held_subsequences
JOIN session_queries AS first_text ON held_subsequences.q1 = first_text.query_id
JOIN session_queries AS second_text ON held_subsequences.q2 = second_text.query_id
JOIN domain_queries AS first_query ON first_text.query = first_query.query
JOIN domain_queries AS second_query ON second_text.query = second_query.query
WHERE held_subsequences.q1 <> held_subsequences.q2
GROUP BY first_query.query_id, second_query.query_id
ORDER BY before_id, after_id
