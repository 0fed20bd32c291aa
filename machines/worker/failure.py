"""What an exception of a handler tells Redis: its text, its traceback, its base classes."""

import traceback

from machines.engine import Engine

from .job import Job
from .registry import ForeignJob

MAX_ERROR = 1_000  # characters of an exception's text that reach the machine as event.error
MAX_TRACE = 16_000  # characters of a traceback that are kept
GAP = "\n...\n"


def report(engine: Engine, job: Job, error: BaseException) -> str:
    """Tell Redis that an attempt failed; return the place of its job. Raises what ``Engine.fail`` raises."""
    text, trace, kind = job.conceal(format_error(error)), job.conceal(format_trace(error)), type(error).__name__
    retry = not isinstance(error, ForeignJob)
    return engine.fail(job.taken, text, kind=kind, trace=trace, kinds=list_bases(error), retry=retry)


def format_error(error: BaseException) -> str:
    """Return what it says of itself; an exception that cannot even say that is a failed attempt like any other."""
    kind = type(error).__name__
    try:
        text = str(error) or kind
    except Exception as another:
        text = f"{kind}, whose text cannot be had: {type(another).__name__}"
    return text[:MAX_ERROR]


def format_trace(error: BaseException) -> str:
    """Return the traceback. Of one that is too long the middle goes: people look for where it began and how it
    ended."""
    try:
        whole = "".join(traceback.format_exception(error))
    except Exception:
        return "".join(traceback.format_tb(error.__traceback__))[-MAX_TRACE:]
    if len(whole) <= MAX_TRACE:
        return whole
    half = (MAX_TRACE - len(GAP)) // 2
    return whole[:half] + GAP + whole[-half:]


def list_bases(error: BaseException) -> list[str]:
    """Return the names of what an exception is besides its own kind, up to but without Exception."""
    return [c.__name__ for c in type(error).__mro__[1:] if issubclass(c, Exception) and c is not Exception]
