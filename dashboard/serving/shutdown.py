"""Says whether this process is stopping: it then finishes its responses and starts no further work."""

from __future__ import annotations

import threading

_told = threading.Event()
set = _told.set
clear = _told.clear
is_set = _told.is_set
