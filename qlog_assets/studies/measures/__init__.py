"""How useful a release is, measured against the log it was made from. The results are private."""
