"""Every registered system on one log: at one (ε, δ), as its paper prints it, and k-anonymity beside them."""
