-- What the expectations about one job of crowd_artifacts read: one row of counts, and no text or token.
-- No list of artifacts by user exists. What limits a user instead is counted here: each account was issued
-- artifacts_per_user tokens, each is spent once, and every user in a count spent one. A count of users is never compared
-- with the number of accounts: accounts that lie may have a text counted once per token, and then one other person,
-- who takes part or not, would decide. What is compared of counts cannot fail, whatever anybody sends: the
-- aggregation makes it so, and this looks for faults of the aggregation.
WITH job AS (
    SELECT *
    FROM jobs
    WHERE application = $application
),

spent AS (
    SELECT
        count(*) AS reports,
        count(*) - count(DISTINCT serial) AS repeated_tokens
    FROM tokens
    WHERE application = $application
),

counted AS (
    SELECT
        count(*) AS artifacts,
        coalesce(sum(users), 0) AS users_counted,
        coalesce(min(users), $share_threshold) AS least_users,
        count(*) - (SELECT count(*) FROM (SELECT DISTINCT * EXCLUDE (users) FROM artifacts)) AS repeated_artifacts,
        count(*) - (SELECT count(*) FROM artifacts WHERE COLUMNS(* EXCLUDE (users)) <> '') AS incomplete_rows
    FROM artifacts
)

SELECT
    $application AS table_name,
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'artifacts'
    ) AS columns,
    spent.repeated_tokens::BIGINT AS repeated_tokens,
    greatest(spent.reports - job.accounts * job.tokens_per_account, 0)::BIGINT AS reports_beyond_tokens,
    job.tokens_per_account,
    greatest(counted.users_counted - spent.reports, 0)::BIGINT AS users_beyond_reports,
    counted.least_users::BIGINT AS least_users,
    counted.repeated_artifacts::BIGINT AS repeated_artifacts,
    counted.incomplete_rows::BIGINT AS incomplete_rows,
    (SELECT count(*) FROM tokens WHERE application NOT IN (SELECT application FROM jobs))::BIGINT AS tokens_of_no_job
FROM job
CROSS JOIN spent
CROSS JOIN counted
