-- All events of a kind, in place of those that users may contribute.
SELECT *
FROM events
