"""Figure 1 of the session logs' paper: how much is left of clicks and sessions as the threshold K grows."""
