-- How much of a log stands behind printed items: users with any of them, and searches that are part of one; and all.
SELECT
    count(DISTINCT "user") FILTER (WHERE is_printed)::BIGINT AS users,
    count(DISTINCT "user")::BIGINT AS all_users,
    coalesce(sum(searches) FILTER (WHERE is_printed), 0)::BIGINT AS searches,
    coalesce(sum(searches), 0)::BIGINT AS all_searches
FROM (
    SELECT
        held_items."user",
        held_items.searches,
        printed_items.item IS NOT NULL AS is_printed
    FROM held_items
    LEFT JOIN printed_items ON held_items.item = printed_items.item
)
