"""What the paper prints in its Table 3: nDCG@10 at K = b = 10, and ε without transitions."""

from __future__ import annotations

from qlog_assets.studies.retrieval_rows import IF_TEST, RW, RW_2

EPSILONS = {10: 4.27, 50: 21.36, 100: 42.73, 150: 64.09, 200: 85.45}
"""By q_f = c_f."""
NDCG = {
    IF_TEST.name: {10: 0.5884, 50: 0.5888, 100: 0.5903, 150: 0.5910, 200: 0.5920},
    RW.name: {10: 0.5826, 50: 0.5828, 100: 0.5843, 150: 0.5850, 200: 0.5850},
    RW_2.name: {10: 0.5891, 50: 0.5893, 100: 0.5909, 150: 0.5916, 200: 0.5923},
}
"""By way to search and q_f = c_f."""
