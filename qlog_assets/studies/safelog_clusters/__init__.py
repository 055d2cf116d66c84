"""Table 4 of the Safelog paper: clusters of sites, of the log itself and of what each mechanism releases of it."""
