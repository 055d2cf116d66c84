-- Who holds which subsequence, each once a user: contributions as methods that weigh a user's items read them.
SELECT DISTINCT * EXCLUDE (is_simple)
FROM subsequences
