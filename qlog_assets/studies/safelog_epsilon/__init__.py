"""Figure 5 of Safelog's paper: what the noise costs, and where the paper's ε turns."""
