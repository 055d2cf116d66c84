-- The texts of the rows that the draw chose, in the order they were chosen.
SELECT
    chosen.position,
    pool_augmented.query,
    pool_augmented.in_pool
FROM chosen
JOIN pool_augmented ON chosen.file_row = pool_augmented.file_row_number
ORDER BY chosen.position
