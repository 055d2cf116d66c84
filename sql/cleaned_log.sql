-- One row of raw_log, normalised: the same rows without those whose query normalises to nothing or to a dash, which is
-- no query; one that starts above the dash surely is one, which saves normalising it twice. A url that normalises to
-- nothing is none. Rows of pure ASCII, nearly all of an English log, are normalised here; the distinct other texts were
-- normalised beforehand (normalised_queries, normalised_urls) and are looked up.
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
    raw_log."user",
    coalesce(normalised_queries.normalised, normalise_ascii(raw_log.query)) AS query,
    raw_log."time",
    raw_log."rank",
    nullif(coalesce(normalised_urls.normalised, normalise_url_ascii(raw_log.url)), '') AS url
FROM raw_log
LEFT JOIN normalised_queries ON raw_log.query = normalised_queries.raw
LEFT JOIN normalised_urls ON raw_log.url = normalised_urls.raw
WHERE
    (strlen(raw_log.query) <> length(raw_log.query) OR strlen(raw_log.url) <> length(raw_log.url))
    AND coalesce(normalised_queries.normalised, normalise_ascii(raw_log.query)) NOT IN ('', '-')
