"""How useful a release is: measures against the log it was made from. Their results are private and never published."""
