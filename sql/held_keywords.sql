-- The distinct words of each user's queries. A normalised text has single spaces between words and none around them.
SELECT DISTINCT
    "user",
    unnest(string_split(query, ' ')) AS keyword
FROM cleaned_queries
