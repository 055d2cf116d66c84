-- The policy of each job that people were shown.
SELECT policy
FROM jobs
