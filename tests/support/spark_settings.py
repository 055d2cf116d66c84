"""Settings that the owner of a cluster may have chosen, and that would change what statements say or write."""

from __future__ import annotations

A_FILE = "spark.sql.files.maxRecordsPerFile"
OTHER_SETTINGS = {
    A_FILE: "50",
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoredPathSegmentRegex": "^[._]|^part-",
    "spark.sql.caseSensitive": "true",
    # Made for other tables: no write succeeds with either.
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol",
    "spark.sql.parquet.output.committer.class": "org.apache.hadoop.mapred.FileOutputCommitter",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
}
OTHER_VARIABLES = {"SPARK_REMOTE": "sc://203.0.113.9:15002", "SPARK_API_MODE": "connect"}
"""What a shell may have set for another Spark: an address that nobody has."""
