-- What the aggregation of a sealed epoch found, as it is.
SELECT *
FROM found
