"""A worker process without Django's commands around it: ``python -m tests.faults.worker URL OPTIONS``.

OPTIONS is JSON for ``machines.worker.options.Options``. It ends when its standard input does, so that none is left
behind by a test run that was killed.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading

from django.conf import settings

from machines.engine import Engine


def main(url: str, given: str) -> None:
    settings.configure()
    from machines.worker.launcher import Launcher
    from machines.worker.options import Options

    from .handlers import registry

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(threadName)s %(message)s")
    engine = Engine.from_url(url)
    launcher = Launcher(engine, registry(engine), Options(**json.loads(given)))
    signal.signal(signal.SIGTERM, lambda *_: launcher.stop())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    launcher.run()
    sys.stdout.write(launcher.summary() + "\n")


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
