-- The rows of a log's first users in the order of users.
SELECT whole_log.*
FROM whole_log
JOIN users_in_order ON whole_log."user" = users_in_order."user"
WHERE users_in_order.place < $users
