-- What users hold, where an item is a whole session.
SELECT
    "user",
    "session" AS item,
    searches
FROM whole_sessions
