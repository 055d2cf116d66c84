-- The artifacts_per_user different artifacts that a user made last: one row per user and artifact.
SELECT *
FROM (
    SELECT
        * EXCLUDE (place),
        max(place) AS place
    FROM sendable_artifacts
    GROUP BY ALL
)
QUALIFY row_number() OVER (PARTITION BY "user" ORDER BY place DESC) <= $artifacts_per_user
