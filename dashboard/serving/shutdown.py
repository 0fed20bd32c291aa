"""Whether this process was told to stop: it then answers what it has, and wants nothing new."""

from __future__ import annotations

import threading

_told = threading.Event()
set = _told.set
clear = _told.clear
is_set = _told.is_set
