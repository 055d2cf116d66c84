-- How many users hold each subsequence whose first query is in one part of the numbers; with `with_repeats`, how often
-- it is held. A simple session's subsequences are all different: only the others are looked at twice, which halves the
-- time on five million sessions.
SELECT
    * EXCLUDE (held_by),
    held_by::BIGINT AS held_by
FROM (
    SELECT
        *,
        count(*) AS held_by
    FROM (
        SELECT * EXCLUDE ("user", is_simple)
        FROM subsequences
        WHERE
            (is_simple OR $with_repeats)
            AND q1 % $parts = $part
        UNION ALL
        SELECT * EXCLUDE ("user")
        FROM (
            SELECT DISTINCT * EXCLUDE (is_simple)
            FROM subsequences
            WHERE
                NOT (is_simple OR $with_repeats)
                AND q1 % $parts = $part
        )
    )
    GROUP BY ALL
)
