-- The histories that at least k users share. Two users share one if neither typed a query that the other did not.
SELECT
    history,
    count(*)::BIGINT AS printed
FROM whole_histories
GROUP BY history
HAVING count(*) >= $k
ORDER BY printed DESC, history
