-- What a study counts in place of the whole month's log.
SELECT *
FROM part_of_log
