"""What Dagster loads: assets, checks, jobs, schedules, sensors and resources. Glue only: no arithmetic."""
