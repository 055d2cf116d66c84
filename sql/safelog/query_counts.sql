-- The counted columns of pool_augmented in file order, for the noise.
SELECT
    users,
    in_pool
FROM pool_augmented
ORDER BY file_row_number
