-- How many strings stay undecrypted, by how many instances they have: the paper publishes both.
SELECT
    instances,
    count(*)::BIGINT AS strings
FROM artifact_counts
WHERE artifact_id NOT IN (SELECT artifact_id FROM drawn_artifacts)
GROUP BY instances
ORDER BY instances
