-- Which numbers of items occur, for their weights: whole numbers that are computed exactly, outside of SQL.
SELECT DISTINCT degree
FROM user_degrees
ORDER BY degree
