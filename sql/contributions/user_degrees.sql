-- How many items each user holds that are not known: by what the first look of steered selection divides a user's weight.
SELECT
    contributions."user",
    count(*)::BIGINT AS degree
FROM contributions
NATURAL ANTI JOIN (SELECT * EXCLUDE (position) FROM known_items) AS known
GROUP BY contributions."user"
