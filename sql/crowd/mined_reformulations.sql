-- Each query of a user with the next different one, however long the pause between them: the paper has no session gap.
-- The rows of a search with several clicks stand side by side: only the last is followed by another query.
SELECT
    "user",
    query,
    next_query,
    place
FROM (
    SELECT
        "user",
        query,
        lead(query) OVER passing AS next_query,
        row_number() OVER passing AS place
    FROM cleaned_log
    WINDOW passing AS (PARTITION BY "user" ORDER BY "time", query, coalesce(url, ''))
)
WHERE next_query <> query
