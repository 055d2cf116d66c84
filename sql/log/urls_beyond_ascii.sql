-- The different urls of raw_beyond_ascii that hold a letter beyond ASCII: what is normalised in Python, each once.
SELECT DISTINCT url AS raw
FROM raw_beyond_ascii
WHERE strlen(url) <> length(url)
