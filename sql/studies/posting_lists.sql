-- How many different queries hold each word of a study, by the word's number: a stand-in for its posting list.
SELECT count(DISTINCT words.query)::BIGINT AS queries
FROM counted_items
JOIN (
    SELECT
        query,
        unnest(string_split(query, ' ')) AS keyword
    FROM (SELECT DISTINCT query FROM cleaned_queries)
) AS words ON counted_items.keyword = words.keyword
GROUP BY counted_items.item_id
ORDER BY counted_items.item_id
