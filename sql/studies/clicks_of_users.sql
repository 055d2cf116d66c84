-- How often each user, by place in the order of users, clicked anything after each query.
SELECT
    users_in_order.place,
    cleaned_clicks.query,
    count(*)::BIGINT AS events
FROM cleaned_clicks
JOIN users_in_order ON cleaned_clicks."user" = users_in_order."user"
GROUP BY users_in_order.place, cleaned_clicks.query
ORDER BY users_in_order.place, cleaned_clicks.query
