-- raw_log with normalised texts. Pure ASCII strings, nearly all of an English log, are normalised here; the others
-- were normalised once each beforehand (normalised_queries, normalised_urls) and are looked up.
SELECT
    raw_log."user",
    coalesce(normalised_queries.normalised, normalise_ascii(raw_log.query)) AS query,
    raw_log."time",
    raw_log."rank",
    coalesce(normalised_urls.normalised, normalise_url_ascii(raw_log.url)) AS url
FROM raw_log
LEFT JOIN normalised_queries ON raw_log.query = normalised_queries.raw
LEFT JOIN normalised_urls ON raw_log.url = normalised_urls.raw
