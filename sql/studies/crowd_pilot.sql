-- The rows of a few users who search a lot, as the participants of a pilot do: of those with at least least_queries
-- searches the ones whose keyed md5 is smallest; where there are too few, the others in the same order.
SELECT whole_log.*
FROM whole_log
JOIN (
    SELECT "user"
    FROM whole_log
    GROUP BY "user"
    ORDER BY count(DISTINCT (query, "time")) >= $least_queries DESC, md5_number('pilot ' || "user"), "user"
    LIMIT $users
) AS participants ON whole_log."user" = participants."user"
