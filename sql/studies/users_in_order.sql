-- Every user of a log in an order that has nothing to do with the user: by a keyed md5 of the id. The first so many of
-- them are a sample, and a larger sample holds every smaller one.
SELECT
    "user",
    row_number() OVER (ORDER BY md5('in order ' || "user"), "user") - 1 AS place
FROM (SELECT DISTINCT "user" FROM whole_log)
