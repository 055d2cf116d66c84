"""Seeded draws, comparisons and measures: private, never published, never charged. One folder per study.

`simulation` draws one month by any variant of a mechanism; `study` is what a study is, and `register` finds them.
"""
