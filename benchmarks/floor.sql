-- The floor: bare DuckDB doing the same job once. One script over the landing file, all months at a time, nothing kept
-- but the counts: no partitions, no provenance, no checks, no noise, no release. The per-user rules are those of
-- sql/safelog/capped_*.sql with the month beside the user, ranked for users over a limit alone; the macros are those of
-- sql/log/normalise_*.sql.
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

over_limit AS (
    SELECT
        month,
        "user"
    FROM first_typed
    GROUP BY month, "user"
    HAVING count(*) > getvariable('queries_per_user')
),

capped AS (
    SELECT
        first_typed.month,
        first_typed.query
    FROM first_typed
    ANTI JOIN over_limit ON first_typed.month = over_limit.month AND first_typed."user" = over_limit."user"
    UNION ALL
    SELECT
        month,
        kept.query
    FROM (
        SELECT
            first_typed.month,
            unnest(
                min({'typed_at': first_typed.typed_at, 'query': first_typed.query}, getvariable('queries_per_user'))
            ) AS kept
        FROM first_typed
        SEMI JOIN over_limit ON first_typed.month = over_limit.month AND first_typed."user" = over_limit."user"
        GROUP BY first_typed.month, first_typed."user"
    )
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

over_limit AS (
    SELECT
        month,
        "user"
    FROM first_clicked
    GROUP BY month, "user"
    HAVING count(*) > getvariable('clicks_per_user')
),

capped AS (
    SELECT
        first_clicked.month,
        first_clicked.query,
        first_clicked.url
    FROM first_clicked
    ANTI JOIN over_limit ON first_clicked.month = over_limit.month AND first_clicked."user" = over_limit."user"
    UNION ALL
    SELECT
        month,
        kept.query,
        kept.url
    FROM (
        SELECT
            first_clicked.month,
            unnest(
                min({'clicked_at': first_clicked.clicked_at, 'query': first_clicked.query, 'url': first_clicked.url}, getvariable('clicks_per_user'))
            ) AS kept
        FROM first_clicked
        SEMI JOIN over_limit ON first_clicked.month = over_limit.month AND first_clicked."user" = over_limit."user"
        GROUP BY first_clicked.month, first_clicked."user"
    )
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

over_limit AS (
    SELECT
        month,
        "user"
    FROM first_made
    GROUP BY month, "user"
    HAVING count(*) > getvariable('transitions_per_user')
),

capped AS (
    SELECT
        first_made.month,
        first_made.query,
        first_made.next_query
    FROM first_made
    ANTI JOIN over_limit ON first_made.month = over_limit.month AND first_made."user" = over_limit."user"
    UNION ALL
    SELECT
        month,
        kept.query,
        kept.next_query
    FROM (
        SELECT
            first_made.month,
            unnest(
                min({'made_at': first_made.made_at, 'query': first_made.query, 'next_query': first_made.next_query}, getvariable('transitions_per_user'))
            ) AS kept
        FROM first_made
        SEMI JOIN over_limit ON first_made.month = over_limit.month AND first_made."user" = over_limit."user"
        GROUP BY first_made.month, first_made."user"
    )
)

SELECT
    month,
    query,
    next_query,
    count(*) AS users
FROM capped
GROUP BY month, query, next_query;
