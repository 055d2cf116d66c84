-- What clients could send, as numbers: the same rows as sendable_artifacts, counted much faster than texts.
SELECT
    crowd_users.user_number AS "user",
    crowd_texts.artifact,
    instances.place::INTEGER AS place
FROM (
    SELECT
        "user",
        concat_ws(chr(9), *COLUMNS(* EXCLUDE ("user", place))) AS artifact_text,
        place
    FROM sendable_artifacts
) AS instances
JOIN crowd_users ON instances."user" = crowd_users."user"
JOIN crowd_texts ON instances.artifact_text = crowd_texts.artifact_text
