-- Each search with the user's next one and the pause between them. Reads only that user's rows.
SELECT
    "user",
    query,
    lead(query) OVER following AS next_query,
    lead("time") OVER following AS next_time,
    lead("time") OVER following - "time" AS pause
FROM cleaned_queries
WINDOW following AS (PARTITION BY "user" ORDER BY "time", query)
