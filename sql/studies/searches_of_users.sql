-- How often each user, by place in the order of users, typed each query.
SELECT
    users_in_order.place,
    cleaned_queries.query,
    count(*)::BIGINT AS events
FROM cleaned_queries
JOIN users_in_order ON cleaned_queries."user" = users_in_order."user"
GROUP BY users_in_order.place, cleaned_queries.query
ORDER BY users_in_order.place, cleaned_queries.query
