"""What the public pool costs Safelog and buys it: shares of a list, and releases of earlier months."""
