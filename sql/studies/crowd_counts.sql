-- How many reports of each artifact were sent.
SELECT
    artifact,
    count(*)::BIGINT AS reports
FROM sent
GROUP BY artifact
ORDER BY artifact
