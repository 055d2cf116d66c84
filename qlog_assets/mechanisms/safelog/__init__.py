"""Safelog (Zhang, Yang, Singh, Xiong 2016)."""
