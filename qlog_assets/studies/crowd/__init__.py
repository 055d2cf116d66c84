"""What CrowdLogging's policies release of a log: Figures 3 to 5 and Table 1 of its paper, and what can be released."""
