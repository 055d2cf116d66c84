-- Each click of a user in the order of time, with the host alone: without the name of a user, a port and a dot at the
-- end. Without those that repeat the one before. As `host_of` in qlog_assets/crowd/mining.py; a url without a host has
-- the empty one, which is never sent.
WITH clicked_hosts AS (
    SELECT
        "user",
        "time",
        query,
        url,
        rtrim(
            regexp_extract(
                url,
                '(?s)\A(?:[^/?#]*://)?(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^/?#:]*)(?::[0-9]*)?(?:[/?#].*)?\z',
                1
            ),
            '.'
        ) AS host
    FROM cleaned_clicks
)

SELECT
    "user",
    query,
    host,
    place
FROM (
    SELECT
        "user",
        query,
        host,
        row_number() OVER passing AS place,
        lag(query) OVER passing AS earlier_query,
        lag(host) OVER passing AS earlier_host
    FROM clicked_hosts
    WINDOW passing AS (PARTITION BY "user" ORDER BY "time", query, url)
)
WHERE (earlier_query, earlier_host) IS DISTINCT FROM (query, host)
