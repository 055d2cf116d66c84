"""Errors a person is meant to read: one line that says what is wrong and what to do, never a private value."""


class QlogError(Exception):
    """Bad input or a refused request. The command line prints it as one line and exits with code 2."""


class RefusedError(QlogError):
    """A request that the account, an earlier release or the policy's limits do not admit. Nothing failed: there is
    nothing to mend, only something else to ask for.

    `in_run` says the same to somebody who asked by a run in Dagster, where the remedy is not an option of a command.
    """

    def __init__(self, message: str, in_run: str | None = None) -> None:
        super().__init__(message)
        self.in_run = in_run or message


class ParameterError(QlogError, ValueError):
    """A parameter that no mechanism may run with. Raised when the parameters are made, before anything is drawn."""
