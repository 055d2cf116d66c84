-- The rows of wanted_holders, all of one user together: what a user gives to an item follows from all that the user holds.
SELECT
    user_id,
    place
FROM wanted_holders
ORDER BY user_id, place
