-- The different queries of raw_beyond_ascii that hold a letter beyond ASCII: what is normalised in Python, each once.
SELECT DISTINCT query AS raw
FROM raw_beyond_ascii
WHERE strlen(query) <> length(query)
