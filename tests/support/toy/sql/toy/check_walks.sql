-- What the expectations of toy_walks read: one row of counts.
SELECT
    coalesce((SELECT max(held) FROM (SELECT count(*) AS held FROM walks GROUP BY "user")), 0) AS max_per_visitor,
    count(*) - (SELECT count(*) FROM (SELECT DISTINCT * FROM walks)) AS repeated_rows
FROM walks
