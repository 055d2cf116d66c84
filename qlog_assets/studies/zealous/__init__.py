"""The comparison of ZEALOUS with its paper and with k-anonymity, and the planner of its `modern` variant."""
