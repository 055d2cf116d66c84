"""What k-anonymity prints of a month, and what is learned in spite of it."""
