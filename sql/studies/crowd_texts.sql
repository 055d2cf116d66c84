-- The different artifacts that clients could send, numbered in the order of their texts.
SELECT
    artifact_text,
    (row_number() OVER (ORDER BY artifact_text) - 1)::INTEGER AS artifact
FROM (
    SELECT DISTINCT concat_ws(chr(9), *COLUMNS(* EXCLUDE ("user", place))) AS artifact_text
    FROM sendable_artifacts
)
