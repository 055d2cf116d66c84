-- Each session as often as it has a query that another one follows: what a subsequence can start with.
SELECT
    user_id,
    is_simple,
    queries,
    first_place,
    queries[first_place] AS first_query
FROM (
    SELECT
        *,
        unnest(range(1, array_length(queries))) AS first_place
    FROM numbered_sessions
)
