-- All that was counted, in the order of the texts.
SELECT *
FROM artifact_counts
ORDER BY artifact_id
