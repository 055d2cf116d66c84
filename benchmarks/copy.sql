-- The copy: a landing file to one Parquet file by bare DuckDB, as our partitions are written. Less cannot be done with a
-- log that is to be read again; copying.py names both files and says how Parquet is written.
SELECT *
FROM read_csv(
    getvariable('landing_file'),
    delim = '\t',
    header = true,
    quote = '',
    escape = '',
    auto_detect = false,
    columns = {'user': 'VARCHAR', 'query': 'VARCHAR', 'time': 'TIMESTAMP', 'rank': 'INTEGER', 'url': 'VARCHAR'}
)
