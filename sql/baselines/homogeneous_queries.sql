-- Inference in spite of k-anonymity. The table whole_rows holds what was printed of several queries at once, one row
-- per printed item and query. Where all printed items with a known query hold another query, too, the known one betrays
-- the other, however many people stand behind the items. One row per known query: in how many items it is, and how many
-- other queries it betrays. The join is within items, which are short: a long one is not shared by k people.
SELECT
    held.query,
    held.items,
    count(other.query)::BIGINT AS betrayed
FROM (
    SELECT
        query,
        count(*)::BIGINT AS items
    FROM whole_rows
    GROUP BY query
) AS held
LEFT JOIN (
    SELECT
        known.query AS known_query,
        learned.query,
        count(*) AS items
    FROM whole_rows AS known
    INNER JOIN whole_rows AS learned ON known.item_id = learned.item_id AND known.query <> learned.query
    GROUP BY known.query, learned.query
) AS other ON held.query = other.known_query AND held.items = other.items
GROUP BY held.query, held.items
ORDER BY held.query
