-- The choices of places in a session that its subsequences are made of, kept for statements that read them again.
SELECT *
FROM chosen_places
