"""Says whether this process is stopping: it then finishes its responses and starts no further work."""

import threading

_event = threading.Event()
set = _event.set
clear = _event.clear
is_set = _event.is_set
