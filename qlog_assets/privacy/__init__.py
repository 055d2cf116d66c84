"""The arithmetic of privacy: noise, histograms, guarantees, audits. Pure: arrays in, arrays out; no files."""
