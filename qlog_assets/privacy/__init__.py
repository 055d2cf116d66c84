"""The arithmetic of privacy: noise, histograms, guarantees and audits. Pure: arrays in, arrays out, no files, no engine."""
