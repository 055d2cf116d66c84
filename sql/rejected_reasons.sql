-- How many rows were rejected for each reason.
SELECT
    reason,
    count(*) AS rows
FROM rejected_log
GROUP BY reason
ORDER BY reason
