-- What a table says in all its columns, whatever the order of rows and files: sums of both halves of each row's md5.
-- As digest_rows, which leaves times out; an audit that computes a table again compares everything.
SELECT
    count(*)
    || '-' || coalesce(sum((row_digest & 18446744073709551615)::HUGEINT), 0)
    || '-' || coalesce(sum((row_digest >> 64)::HUGEINT), 0) AS digest
FROM (
    SELECT md5_number(concat_ws('|', *COLUMNS(*))) AS row_digest
    FROM (SELECT concat(strlen(COLUMNS(*)), ':', COLUMNS(*)) FROM (SELECT CAST(COLUMNS(*) AS VARCHAR) FROM compared))
)
