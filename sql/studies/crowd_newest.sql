-- What users sent under a limit, each row with its place among the user's own, from 1 for the newest: under a smaller
-- limit d they send those up to place d.
SELECT
    artifact,
    row_number() OVER (PARTITION BY "user" ORDER BY place DESC)::INTEGER AS newest
FROM sent
