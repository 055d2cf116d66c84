"""Choosing parameters before a log is looked at: public descriptions of logs, imagined or twin logs, trials, a plan."""
