"""CrowdLogging's running parts: what clients mine and send, relays, the collector and the randomness server.

Nothing here draws noise or publishes: a sealed epoch of reports is where `mechanisms/crowd` begins.
"""
