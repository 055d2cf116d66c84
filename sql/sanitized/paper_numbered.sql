-- The numbers of paper_pair_counts, for the optimisation.
SELECT
    user_id,
    pair_id,
    query_id,
    events
FROM paper_pair_counts
ORDER BY user_id, pair_id
