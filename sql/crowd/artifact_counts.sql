-- Each artifact that was sent, with the users who sent it and how many times they did, numbered by text.
SELECT
    * EXCLUDE (artifact_text),
    row_number() OVER (ORDER BY artifact_text) - 1 AS artifact_id
FROM (
    SELECT
        * EXCLUDE ("user", place),
        concat_ws(chr(9), *COLUMNS(* EXCLUDE ("user", place))) AS artifact_text,
        count(DISTINCT "user")::BIGINT AS users,
        count(*)::BIGINT AS instances
    FROM sent
    GROUP BY ALL
)
