-- The rows of raw_log, normalised, without those whose query normalises to nothing or to a dash, which is no query; one
-- that starts above the dash surely is one, which saves normalising it twice. A url that normalises to nothing is none.
-- Rows of pure ASCII, nearly all of an English log, are normalised here; the texts of raw_beyond_ascii were normalised
-- beforehand, each once (normalised_queries, normalised_urls), and are looked up.
SELECT
    "user",
    normalise_ascii(query) AS query,
    "time",
    "rank",
    nullif(normalise_url_ascii(url), '') AS url
FROM raw_log
WHERE
    strlen(query) = length(query)
    AND coalesce(strlen(url) = length(url), true)
    AND (query >= '.' OR normalise_ascii(query) NOT IN ('', '-'))
UNION ALL
SELECT
    raw_beyond_ascii."user",
    coalesce(normalised_queries.normalised, normalise_ascii(raw_beyond_ascii.query)) AS query,
    raw_beyond_ascii."time",
    raw_beyond_ascii."rank",
    nullif(coalesce(normalised_urls.normalised, normalise_url_ascii(raw_beyond_ascii.url)), '') AS url
FROM raw_beyond_ascii
LEFT JOIN normalised_queries ON raw_beyond_ascii.query = normalised_queries.raw
LEFT JOIN normalised_urls ON raw_beyond_ascii.url = normalised_urls.raw
WHERE coalesce(normalised_queries.normalised, normalise_ascii(raw_beyond_ascii.query)) NOT IN ('', '-')
