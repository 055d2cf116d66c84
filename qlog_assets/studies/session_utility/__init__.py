"""Figure 2 of the session logs' paper: how well logs suggest, against how many sessions they can answer."""
