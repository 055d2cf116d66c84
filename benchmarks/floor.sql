-- The floor: bare DuckDB doing the same job once. One script over the landing file, all months at a time, nothing kept
-- but the counts: no partitions, no provenance, no checks, no noise, no release. The per-user rules are those of
-- sql/capped_*.sql with the month beside the user; the macros are those of sql/normalise_*.sql.
-- Statements are told apart by their stage names; floor.py sets the variables.

-- stage: read and normalise
CREATE TABLE log AS
SELECT
    "user",
    date_trunc('month', "time") AS month,
    "time",
    normalise_ascii(query) AS query,
    "rank",
    normalise_url_ascii(url) AS url
FROM read_csv(
    getvariable('landing_file'),
    delim = '\t',
    header = true,
    quote = '',
    escape = '',
    auto_detect = false,
    columns = {'user': 'VARCHAR', 'query': 'VARCHAR', 'time': 'TIMESTAMP', 'rank': 'INTEGER', 'url': 'VARCHAR'}
);

-- stage: queries
CREATE TABLE query_counts AS
WITH first_typed AS (
    SELECT
        month,
        "user",
        query,
        min("time") AS typed_at
    FROM log
    WHERE query NOT IN ('', '-')
    GROUP BY month, "user", query
),

capped AS (
    SELECT
        month,
        query
    FROM first_typed
    QUALIFY
        row_number() OVER (PARTITION BY month, "user" ORDER BY typed_at, query) <= getvariable('queries_per_user')
)

SELECT
    month,
    query,
    count(*) AS users
FROM capped
GROUP BY month, query;

-- stage: clicks
CREATE TABLE pair_counts AS
WITH first_clicked AS (
    SELECT
        month,
        "user",
        query,
        url,
        min(epoch_us("time")::HUGEINT * 2147483648 + coalesce("rank", 2147483647)) AS clicked_at
    FROM log
    WHERE url <> '' AND query NOT IN ('', '-')
    GROUP BY month, "user", query, url
),

capped AS (
    SELECT
        month,
        query,
        url
    FROM first_clicked
    QUALIFY
        row_number() OVER (PARTITION BY month, "user" ORDER BY clicked_at, query, url) <= getvariable('clicks_per_user')
)

SELECT
    month,
    query,
    url,
    count(*) AS users
FROM capped
GROUP BY month, query, url;

-- stage: transitions
CREATE TABLE transition_counts AS
WITH following AS (
    SELECT
        month,
        "user",
        query,
        "time",
        lead(query) OVER searches AS next_query,
        lead("time") OVER searches AS next_time
    FROM log
    WHERE query NOT IN ('', '-')
    WINDOW searches AS (PARTITION BY month, "user" ORDER BY "time", query)
),

first_made AS (
    SELECT
        month,
        "user",
        query,
        next_query,
        min(next_time) AS made_at
    FROM following
    WHERE
        next_query <> query
        AND next_time - "time" <= to_minutes(getvariable('session_gap_minutes'))
    GROUP BY month, "user", query, next_query
),

capped AS (
    SELECT
        month,
        query,
        next_query
    FROM first_made
    QUALIFY
        row_number() OVER (PARTITION BY month, "user" ORDER BY made_at, query, next_query)
        <= getvariable('transitions_per_user')
)

SELECT
    month,
    query,
    next_query,
    count(*) AS users
FROM capped
GROUP BY month, query, next_query;
