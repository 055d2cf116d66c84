"""The published systems, one folder each. The register finds them; adding one edits no list.

Inside a folder: `parameters`, `guarantee`, `noise` and `paper` are pure; `stages` holds the SQL stages with their
checks, `draw` joins counting statements to the noise, `attacks` tries to break it, `account` is what the datasheet
says, and `mechanism` puts the pieces together.
"""
