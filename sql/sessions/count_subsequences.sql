-- How many subsequences the sessions have, repeats included: what decides in how many parts they are counted.
SELECT coalesce(sum(choices.number), 0)::BIGINT AS held
FROM numbered_sessions
JOIN (
    SELECT
        lengths.session_length,
        count(*) AS number
    FROM (SELECT DISTINCT array_length(queries) AS session_length FROM numbered_sessions) AS lengths
    JOIN places ON places.last_place <= lengths.session_length
    GROUP BY lengths.session_length
) AS choices ON array_length(numbered_sessions.queries) = choices.session_length
