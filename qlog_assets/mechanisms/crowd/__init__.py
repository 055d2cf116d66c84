"""CrowdLogging (Feild, Allan, Glatt 2011)."""
