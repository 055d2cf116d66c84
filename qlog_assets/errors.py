"""Errors a person is meant to read: one line that says what is wrong and what to do, never a private value."""


class QlogError(Exception):
    """Bad input or a refused request. The command line prints it as one line and exits with code 2."""


class ParameterError(QlogError, ValueError):
    """A parameter that no mechanism may run with. Raised when the parameters are made, before anything is drawn."""
