-- The texts of the artifacts that a policy of the paper prints, beside what it prints of each.
SELECT
    artifact_counts.* EXCLUDE (artifact_id, users, instances),
    drawn_artifacts.printed
FROM drawn_artifacts
JOIN artifact_counts ON drawn_artifacts.artifact_id = artifact_counts.artifact_id
ORDER BY drawn_artifacts.artifact_id
