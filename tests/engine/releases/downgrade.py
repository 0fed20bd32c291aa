"""What a program of an older release does on the data of a newer one, as JSON. Run with that release importable.

python downgrade.py URL [LAYOUT]      LAYOUT: the highest layout that this release is made to know, and its number
"""

import json
import sys

from machines.engine import Engine, errors

EVENTS = {"Shut": "open", "Open": "close"}


def attempt(work):
    """Return "ok" or the class of the error, with the code that it has."""
    try:
        work()
    except errors.SignalboxError as error:
        return [type(error).__name__, error.code, str(error)]
    except Exception as error:  # what a release let out that had no name for it
        return [type(error).__name__, "", str(error)]
    return ["ok", "", ""]


def steps(url):
    engine = Engine.from_url(url)
    yield "fire", attempt(lambda: engine.fire("door", "x", EVENTS[engine.get("door", "x").state]))
    yield "history", attempt(lambda: engine.history("door", "x"))
    engine = Engine.from_url(url)
    yield "load", attempt(engine.load_library)
    yield "history after", attempt(lambda: engine.history("door", "x"))


if __name__ == "__main__":
    if sys.argv[2:]:
        from machines.engine import data_layout
        from machines.engine.connection import library

        known = int(sys.argv[2])
        library.RELEASE, data_layout.LAYOUT, library.NAME = known, known, library.FAMILY
        data_layout.check.__defaults__ = (known,)
    print(json.dumps(dict(steps(sys.argv[1]))))  # noqa: T201
