"""What insight refuses, and what can be wrong with its files."""

from machines.engine.errors import BadInput, SignalboxError


class InsightOff(SignalboxError):
    """No place is set for the facts, the database of that alias is missing, or DuckDB is not installed."""

    code = "SB690"


class StoreUnavailable(SignalboxError):
    """The folder or the database of the facts is away, full or read only, or holds a damaged or a foreign file.
    ``str()`` names paths of the server, for its log; ``message`` does not."""

    code = "SB691"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = "the facts cannot be read or written; the log says why"


class BadSearch(BadInput):
    """A search or a question makes no sense: an unknown measure, a state twice, a time that ends before it begins."""

    code = "SB692"


class BadLog(BadInput):
    """An event log cannot be read. ``line``: where the first problem is, 0 where it has no line."""

    code = "SB693"
    shown = ("line",)

    def __init__(self, message: str, line: int = 0) -> None:
        self.line = line
        super().__init__(f"line {line}: {message}" if line else message)
