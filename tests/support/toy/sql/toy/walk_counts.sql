-- How many visitors took each walk.
SELECT
    walk,
    count(*)::BIGINT AS users
FROM walks
GROUP BY walk
ORDER BY walk
