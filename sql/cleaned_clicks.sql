-- One row a click, by user and time: the rows of the log that name a url, which is normalised here where it is pure
-- ASCII and looked up where not. A url that starts above the slash is not empty when normalised.
SELECT
    "user",
    query,
    normalise_url_ascii(url) AS url,
    "time",
    "rank"
FROM normalised_log
WHERE
    strlen(url) = length(url)
    AND (url >= '0' OR normalise_url_ascii(url) <> '')
UNION ALL
SELECT
    normalised_log."user",
    normalised_log.query,
    normalised_urls.normalised AS url,
    normalised_log."time",
    normalised_log."rank"
FROM normalised_log
JOIN normalised_urls ON normalised_log.url = normalised_urls.raw
WHERE normalised_urls.normalised <> ''
ORDER BY "user", "time"
