-- The sampled rows in the log's own words: real users, as the paper has them.
SELECT
    texts."user",
    texts.query,
    texts.url,
    sampled.events AS "count"
FROM sampled
JOIN paper_pair_counts AS texts ON sampled.user_id = texts.user_id AND sampled.pair_id = texts.pair_id
ORDER BY texts."user", texts.query, texts.url
