-- The artifacts_per_user instances of artifacts that a user made last: an artifact that she repeats takes several.
SELECT *
FROM sendable_artifacts
QUALIFY row_number() OVER (PARTITION BY "user" ORDER BY place DESC) <= $artifacts_per_user
