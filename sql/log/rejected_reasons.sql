-- How many rows were rejected for each reason.
SELECT
    reason,
    count(*) AS rows
FROM rejected_rows
GROUP BY reason
ORDER BY reason
