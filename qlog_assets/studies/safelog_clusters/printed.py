"""What the Safelog paper prints of its clusters of websites ("Exploring Web Mining" and Table 4)."""

from __future__ import annotations

SITES_CLUSTERED = 1000
CLUSTERS_LABELLED = 10
"""Those that were labelled by hand; Table 4 shows three of them."""
SITES_LABELLED = 59
PURITY = 0.76
THRESHOLD = 100
"""K"""
LIMIT = 100
"""q_f and c_f"""
SCALE = 10
"""Every b"""
