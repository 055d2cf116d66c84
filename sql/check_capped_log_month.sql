-- What the expectations of capped_log about its month read. The capped tables carry no time, so the question is asked
-- of where they came from: how many of their rows no search or click of the month accounts for.
WITH searches AS (
    SELECT
        "user",
        query
    FROM cleaned_queries
    WHERE "time" >= $month_start AND "time" < $month_end
)

SELECT
    'queries' AS table_name,
    count(*) AS rows_outside_month
FROM capped_queries
ANTI JOIN searches
    ON capped_queries."user" = searches."user" AND capped_queries.query = searches.query
UNION ALL
SELECT
    'clicks' AS table_name,
    count(*) AS rows_outside_month
FROM capped_clicks
ANTI JOIN cleaned_clicks
    ON
        capped_clicks."user" = cleaned_clicks."user"
        AND capped_clicks.query = cleaned_clicks.query
        AND capped_clicks.url = cleaned_clicks.url
        AND cleaned_clicks."time" >= $month_start
        AND cleaned_clicks."time" < $month_end
UNION ALL
SELECT
    'transitions' AS table_name,
    count(*) AS rows_outside_month
FROM (
    SELECT "user", query FROM capped_transitions
    UNION ALL
    SELECT "user", next_query AS query FROM capped_transitions
) AS ends
ANTI JOIN searches
    ON ends."user" = searches."user" AND ends.query = searches.query
