"""Figure 3 of Safelog's paper: does search still work on the released log?"""
