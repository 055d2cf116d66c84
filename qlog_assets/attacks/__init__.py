"""The auditor: attacks on neighbouring logs. The cases of a mechanism are in its own folder."""
