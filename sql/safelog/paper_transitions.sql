-- Algorithm 1 of Safelog as printed: adjacent queries in each user's capped list, both of them released. For studies.
WITH frequent AS (
    SELECT query
    FROM cleaned_queries
    GROUP BY query
    HAVING count(*) >= $min_frequency
),

kept AS (
    SELECT
        cleaned_queries."user",
        cleaned_queries.query,
        cleaned_queries."time"
    FROM cleaned_queries
    JOIN frequent ON cleaned_queries.query = frequent.query
    QUALIFY
        row_number() OVER (
            PARTITION BY cleaned_queries."user" ORDER BY cleaned_queries."time", cleaned_queries.query
        ) <= $queries_per_user
),

adjacent AS (
    SELECT
        query,
        lead(query) OVER (PARTITION BY "user" ORDER BY "time", query) AS next_query
    FROM kept
)

SELECT
    before.query_id AS query_id,
    after.query_id AS next_query_id,
    count(*)::BIGINT AS events
FROM adjacent
JOIN released_ids AS before ON adjacent.query = before.query
JOIN released_ids AS after ON adjacent.next_query = after.query
GROUP BY before.query_id, after.query_id
ORDER BY before.query_id, after.query_id
