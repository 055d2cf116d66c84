-- The transitions of an earlier release between two queries that were released again. Public rows alone.
SELECT earlier_rows.*
FROM earlier_rows
SEMI JOIN released_queries ON earlier_rows.query = released_queries.query
SEMI JOIN released_queries AS after ON earlier_rows.next_query = after.query
ORDER BY earlier_rows.query, earlier_rows.next_query
