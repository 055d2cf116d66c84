-- How many users hold 1, 2, 3 ... pairs, up to pairs_per_user: a user is in one cell. Cells of nobody have a row too.
WITH users AS (
    SELECT count(*) AS held
    FROM contributions
    GROUP BY "user"
)

SELECT count(users.held)::BIGINT AS users
FROM (SELECT unnest(range(1, $pairs_per_user + 1)) AS held) AS cells
LEFT JOIN users ON cells.held = users.held
GROUP BY cells.held
ORDER BY cells.held
