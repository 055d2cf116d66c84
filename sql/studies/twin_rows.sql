-- Every row of a synthetic twin in each user's order of time, for a plan: nobody in it exists.
SELECT
    "user",
    query,
    epoch("time")::BIGINT AS seconds,
    url
FROM cleaned_log
ORDER BY "user", "time", query
