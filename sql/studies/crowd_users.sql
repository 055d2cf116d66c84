-- The users of a log, numbered in the order of their ids, and whether one is the planted person of a synthetic log: the
-- only one who types this query. A study tells nobody's number.
SELECT
    "user",
    (row_number() OVER (ORDER BY "user") - 1)::INTEGER AS user_number,
    bool_or(query = $planted_query) AS planted
FROM cleaned_log
GROUP BY "user"
