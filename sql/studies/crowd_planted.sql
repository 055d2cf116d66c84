-- The artifacts of the planted person, by number, and how often she made each.
SELECT
    crowd_instances.artifact,
    count(*)::BIGINT AS instances
FROM crowd_instances
JOIN crowd_users ON crowd_instances."user" = crowd_users.user_number
WHERE crowd_users.planted
GROUP BY crowd_instances.artifact
ORDER BY crowd_instances.artifact
