"""Works on a server until standard input ends, then says as JSON how it went. Run with any release importable.

python load.py URL NAME [RELEASE]      RELEASE: the number that this release's library is given
"""

import json
import sys
import threading

from machines.engine import Engine, errors
from machines.engine.connection import library
from machines.engine.keys import PREFIX

AT_LEAST = 50  # ticks, however soon it is stopped
PAUSE = 0.003  # seconds between two ticks: seven processes at full speed would keep each other from starting
TALLY = {
    "id": "tally",
    "initial": "On",
    "context": {"n": 0},
    "states": {
        "On": {"on": {"tick": {"actions": {"set": {"n": "n + 1"}}}, "work": "Busy"}},
        "Busy": {"invoke": {"src": "count", "onDone": "On"}},
    },
}


def work(engine, name, stop):
    """One instance ticks and gets a job every twentieth tick; errors are listed, and nothing is repeated."""
    failed, done, jobs = [], 0, []
    engine.publish(TALLY)
    engine.create("tally", name)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while (done < AT_LEAST and len(failed) < AT_LEAST) or not stop.is_set():
        try:
            stop.wait(PAUSE)
            assert engine.fire("tally", name, "tick").data["n"] == done + 1
            done += 1
            if done % 20 == 0:
                engine.fire("tally", name, "work")
                while engine.get("tally", name).state != "On":  # any of the processes may take it
                    jobs += [job.id for job in engine.take("tally", "count", name, count=9) if engine.complete(job)]
        except errors.SignalboxError as error:
            failed.append(f"{type(error).__name__}: {error}")
    return {"done": done, "jobs": jobs, "n": engine.get("tally", name).data["n"], "failed": failed}


if __name__ == "__main__":
    release, prefix = [*sys.argv[3:], "", ""][:2]
    if release:
        library.RELEASE = int(release)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    print(json.dumps(work(Engine.from_url(sys.argv[1], prefix=prefix or PREFIX), sys.argv[2], over)))  # noqa: T201
