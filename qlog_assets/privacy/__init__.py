"""The arithmetic of privacy: noise, histograms, selection, accounting, guarantees. Pure: arrays in, arrays out."""
