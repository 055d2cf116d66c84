"""Figure 4 of Safelog's paper: how well search works as the noise grows."""
