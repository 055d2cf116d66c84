-- The counted columns of pool_augmented for the noise, by text, so that a seeded draw can be repeated: the order of rows
-- in the file is chance. The row number leads back to the text.
SELECT
    users,
    in_pool,
    file_row_number AS file_row
FROM pool_augmented
ORDER BY query
