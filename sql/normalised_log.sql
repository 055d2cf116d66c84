-- raw_log with normalised queries. Pure ASCII strings, nearly all of an English log, are normalised here; the others
-- were normalised once each beforehand (normalised_queries) and are looked up. A text that normalises to nothing, or to
-- a dash, is no query; one that starts above the dash surely is, which saves normalising it twice.
SELECT
    "user",
    normalise_ascii(query) AS query,
    "time",
    "rank",
    url
FROM raw_log
WHERE
    strlen(query) = length(query)
    AND (query >= '.' OR normalise_ascii(query) NOT IN ('', '-'))
UNION ALL
SELECT
    raw_log."user",
    normalised_queries.normalised AS query,
    raw_log."time",
    raw_log."rank",
    raw_log.url
FROM raw_log
JOIN normalised_queries ON raw_log.query = normalised_queries.raw
WHERE normalised_queries.normalised NOT IN ('', '-')
