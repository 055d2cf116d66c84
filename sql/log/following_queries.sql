-- Each search with the user's next one and the pause between them. Reads only that user's rows.
-- The rows of a search with several clicks stand side by side here: each but the last is followed by its own query,
-- which is no step from one query to another, so nobody who asks for such steps needs them gone first.
SELECT
    "user",
    query,
    lead(query) OVER following AS next_query,
    lead("time") OVER following AS next_time,
    lead("time") OVER following - "time" AS pause
FROM cleaned_log
WINDOW following AS (PARTITION BY "user" ORDER BY "time", query)
