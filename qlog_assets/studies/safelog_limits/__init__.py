"""Table 3 of Safelog's paper: many users with few searches each, or few users with many."""
