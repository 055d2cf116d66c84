-- What users contribute to the table of transitions: those between two queries that were just released.
SELECT
    capped_transitions."user",
    capped_transitions.query,
    capped_transitions.next_query
FROM capped_transitions
SEMI JOIN released_queries ON capped_transitions.query = released_queries.query
SEMI JOIN released_queries AS after ON capped_transitions.next_query = after.query
