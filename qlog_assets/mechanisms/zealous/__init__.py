"""ZEALOUS (Götz, Machanavajjhala, Wang, Xiao, Gehrke)."""
