-- Each word of each search. A normalised text has single spaces between words and none around them.
SELECT
    "user",
    unnest(string_split(query, ' ')) AS keyword
FROM cleaned_queries
