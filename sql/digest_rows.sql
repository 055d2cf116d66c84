-- What a table of texts says, whatever the order of rows and files: sums of both halves of each row's md5.
-- Lengths before the texts keep two different rows from spelling one string.
SELECT
    count(*)
    || '-' || coalesce(sum(md5_number_upper(row_text)::HUGEINT), 0)
    || '-' || coalesce(sum(md5_number_lower(row_text)::HUGEINT), 0) AS digest
FROM (
    SELECT concat_ws('|', *COLUMNS(*)) AS row_text
    FROM (SELECT strlen(COLUMNS(*)) || ':' || COLUMNS(*) FROM written)
)
