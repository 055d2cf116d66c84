"""What writes generated pages and pins. Not part of the wheel."""
