"""Settings that the owner of a cluster may have chosen, and that would change what statements say or write."""

from __future__ import annotations

A_FILE = "spark.sql.files.maxRecordsPerFile"
OTHER_SETTINGS = {
    A_FILE: "50",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.caseSensitive": "true",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
}
