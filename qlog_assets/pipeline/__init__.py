"""From landing file to cleaned log, public material, and what a stage is. Knows no mechanism."""
