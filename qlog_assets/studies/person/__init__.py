"""What each system would print of one person, and what an attacker learns of them."""
