-- The counts of artifact_counts in the order of its numbers, for the noise.
SELECT
    users,
    instances
FROM artifact_counts
ORDER BY artifact_id
