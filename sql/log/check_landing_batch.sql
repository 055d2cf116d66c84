-- What the expectations of landing_batch read: one row about one batch, and no content of a rejected line.
-- A row of a month that the policy does not take in, and a request of a web server that is no search, are rejected, but
-- are no bad rows and do not count in the share.
-- A reason is one of a few fixed phrases; anything with another letter in it may be a piece of the line itself.
SELECT
    (
        SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY column_index)
        FROM duckdb_columns()
        WHERE table_name = 'rejected_rows'
    ) AS columns,
    $rows_read::BIGINT - $rows_accepted::BIGINT - count(*) AS rows_unaccounted_for,
    CASE
        WHEN $rows_read::BIGINT = 0 THEN 0.0
        ELSE count(*) FILTER (
            WHERE reason IS NULL OR reason NOT IN ('month_outside_policy', 'not_a_search')
        ) / $rows_read::DOUBLE
    END AS rejected_share,
    count(*) FILTER (
        WHERE file IS NULL OR line IS NULL OR reason IS NULL OR NOT regexp_full_match(reason, '[a-z][a-z _,-]{2,60}')
    ) AS rows_without_plain_reason
FROM rejected_rows
