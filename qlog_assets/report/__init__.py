"""What a release says of itself: the manifest and the datasheet. Public facts only."""
