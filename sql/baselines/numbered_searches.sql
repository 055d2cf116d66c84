-- Each search as numbers: who typed which query. Queries are numbered by text, as in baselines/queries.
SELECT
    dense_rank() OVER (ORDER BY "user") - 1 AS user_id,
    dense_rank() OVER (ORDER BY query) - 1 AS item_id
FROM cleaned_queries
