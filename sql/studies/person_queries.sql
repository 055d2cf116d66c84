-- One person's different queries, with the number of users who typed each.
SELECT
    query,
    count(DISTINCT "user")::BIGINT AS users
FROM cleaned_queries
WHERE query IN (SELECT query FROM cleaned_queries WHERE "user" IN (SELECT "user" FROM person))
GROUP BY query
