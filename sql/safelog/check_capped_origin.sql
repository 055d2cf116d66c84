-- How many capped rows no row of the cleaned log accounts for. The audit asks: joining with the whole month costs as much
-- as capping it, and the door has checksums and lineage for the same question.
SELECT
    (
        SELECT count(*)
        FROM (
            SELECT "user", query FROM capped_queries
            UNION ALL
            SELECT "user", query FROM capped_transitions
            UNION ALL
            SELECT "user", next_query AS query FROM capped_transitions
        ) AS typed
        ANTI JOIN cleaned_log ON typed."user" = cleaned_log."user" AND typed.query = cleaned_log.query
    )
    + (
        SELECT count(*)
        FROM capped_clicks
        ANTI JOIN cleaned_log
            ON
                capped_clicks."user" = cleaned_log."user"
                AND capped_clicks.query = cleaned_log.query
                AND capped_clicks.url = cleaned_log.url
    ) AS rows_from_nowhere
