-- Each user's history: all the different queries that the user typed in the month, in the order of their texts, with
-- the number of searches it was. Reads only that user's rows.
SELECT
    "user",
    list(query ORDER BY query) AS history,
    sum(searches)::BIGINT AS searches
FROM (
    SELECT
        "user",
        query,
        count(*) AS searches
    FROM cleaned_queries
    GROUP BY "user", query
)
GROUP BY "user"
