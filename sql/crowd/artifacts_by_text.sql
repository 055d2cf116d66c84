-- The artifacts of a job that enough users sent, in an order that their texts alone decide.
SELECT *
FROM artifacts
ORDER BY ALL
