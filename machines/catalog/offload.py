"""Helper processes for work that computes for long: reading submitted definitions, and drawing.

A web process has one interpreter, which all of its threads and its event loop share. A definition is read in Python,
for about a second per half megabyte, by code that meets texts nobody has seen before; so it is read elsewhere, with a
limit on processor time and on memory, and a helper that passes one is ended and another started.

    done = offload.run("read", text, who="7", cpu=3.0, format="yaml")
    done.answer, done.cpu

``who`` has one thing at a time under way, and there are ``HELPERS`` helpers for all. Needs neither Django nor Redis.

::

    SignalboxError
    └── OffloadError
        ├── AtOnce      the person has a task under way already
        ├── NoHelper    all helpers are busy, or none can be started
        └── Overrun     it took more processor time or memory than it may

Between the two processes go a JSON header and a payload of bytes.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from machines.engine.definitions import CompiledDefinition, Finding, outline
from machines.engine.errors import SignalboxError

from . import submissions
from .submissions import Submission


class OffloadError(SignalboxError):
    """Nothing was done. ``retry_after``: seconds until it may be worth another try, 0 where it never is."""

    retry_after = 0

    def facts(self) -> dict[str, Any]:
        return super().facts() | ({"retry_after": self.retry_after} if self.retry_after else {})


class AtOnce(OffloadError):
    code = "SB712"
    retry_after = 1

    def __init__(self) -> None:
        super().__init__("you have a definition under way already: they are read one after the other")


class NoHelper(OffloadError):
    code = "SB714"
    retry_after = 5

    def __init__(self, why: str) -> None:
        super().__init__(f"nobody can do this now: {why}")


class Overrun(OffloadError):
    """``seconds``: of processor time that it may take."""

    code = "SB716"

    def __init__(self, seconds: float, what: str = "") -> None:
        super().__init__(
            what or f"it takes more than {seconds:g} s of computing: make it smaller or simpler", seconds=seconds
        )


def send(link: Connection, header: dict[str, Any], payload: bytes) -> None:
    """Raise OSError."""
    link.send_bytes(json.dumps(header).encode())
    link.send_bytes(payload)


def receive(link: Connection, seconds: float) -> tuple[dict[str, Any], bytes]:
    """Receive a header and its payload. Raises TimeoutError, OSError, EOFError where the other end is gone."""
    if not link.poll(seconds):
        raise TimeoutError
    return json.loads(link.recv_bytes()), link.recv_bytes()


def pack(text: str | bytes) -> tuple[bool, bytes]:
    """Tell whether it is text, and its bytes: half a surrogate pair, too, which the reader is to complain of."""
    return (True, text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else (False, text)


def unpack(is_text: bool, raw: bytes) -> str | bytes:
    return raw.decode("utf-8", "surrogatepass") if is_text else raw


@dataclass(frozen=True, slots=True)
class HelperResult:
    """``cpu``: seconds of processor time it took."""

    answer: Any
    cpu: float


def _read(text: str | bytes, *, format: str, name: str = "", **wanted: bool) -> dict[str, Any]:
    """Read and check a text in a format."""
    return _encode_submission(submissions.read(text, format=format, name=name), **wanted)


def _check(text: str | bytes, **wanted: bool) -> dict[str, Any]:
    """Return a definition as JSON, checked like any submitted object."""
    return _encode_submission(Submission.of(json.loads(text)), **wanted)


def _draw(text: str | bytes, *, folds: Iterable[str] = (), full: bool = False, grouped: bool = False) -> str:
    """Return the SVG of a definition as JSON. ``grouped``: its states are grouped by the first words of their names."""
    from machines import diagrams

    found = outline(json.loads(text))
    drawn = (diagrams.group_by_prefix(found) if grouped else None) or found
    return diagrams.draw(drawn, folds=frozenset(folds), full=full)


def _compare(text: str | bytes) -> dict[str, Any]:
    """Return the diagram of two definitions, as ``machines.diagrams.merge`` merges them: ``{"old": definition, "new":
    definition, "states": [...], "transitions": [...], "renamed": {...}}``."""
    from machines import diagrams
    from machines.diagrams.merge import merge

    given = json.loads(text)
    words = {name: given[name] for name in ("states", "transitions", "renamed")}
    found = merge(outline(given["old"]), outline(given["new"]), **words)
    facts = {"states": found.states, "transitions": found.transitions}
    return facts | {
        "svg": diagrams.draw(found.outline, merged=False),
        "index": diagrams.index(found.outline, merged=False),
    }


def _study(text: str | bytes, **wanted: Any) -> dict[str, Any]:
    """Return a text that an author is writing, as ``machines.catalog.editing.checking.check`` answers it."""
    from .editing.checking import check

    return check(text if isinstance(text, str) else text.decode("utf-8", "replace"), **wanted)


def _locate(text: str | bytes, *, format: str, paths: list[str]) -> list[list[int]]:
    """Return where paths of a definition stand in its text, as ``editing.checking.locate_paths`` answers it."""
    from .editing.checking import locate_paths

    return locate_paths(text if isinstance(text, str) else text.decode("utf-8", "replace"), format, paths)


def _encode_submission(found: Submission, *, whole: bool = False) -> dict[str, Any]:
    """Encode a submission. ``whole``: with all that publishing it takes."""
    findings = [asdict(finding) for finding in found.findings]
    facts = {"definition": found.definition, "format": found.format, "findings": findings}
    if found.compiled is not None and whole:
        facts["compiled"] = found.compiled.as_dict()
    return facts


TASKS: dict[str, Callable[..., Any]] = {
    "read": _read,
    "check": _check,
    "draw": _draw,
    "compare": _compare,
    "study": _study,
    "locate": _locate,
}


DRAWING = ("draw", "compare", "study")


def prepare(task: str) -> None:
    """Load what draws, where a task does: the first time it is compiled, which takes some seconds on a slow processor,
    and those are not the task's."""
    if task in DRAWING:
        from machines.diagrams.layout.graphviz import graphviz_host

        graphviz_host()


def read_submission(done: HelperResult) -> Submission:
    """Return what ``read`` and ``check`` answer."""
    facts = done.answer
    findings = tuple(Finding(**finding) for finding in facts["findings"])
    compiled = CompiledDefinition.from_dict(facts["compiled"]) if "compiled" in facts else None
    return Submission(facts["definition"], findings, facts["format"], compiled)


GOING = 0.2  # seconds until one that has closed its end is gone
START = 30.0  # seconds until it must be ready
SLACK = 8.0  # times the processor time that a task may take by the clock: others use this machine, too
MEMORY = 768 * 1024 * 1024  # bytes
MEMORY_SPENT = "it takes more memory than it may: make it smaller or simpler"
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "HOME", "LD_LIBRARY_PATH")  # of our environment; secrets stay here


class Helper:
    """For one thread at a time. ``memory``: bytes that it may hold. Raises NoHelper when it cannot be started."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._link, theirs = Pipe()
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        command = [sys.executable, "-m", "machines.catalog.offload_child", str(theirs.fileno()), str(memory)]
        try:
            with theirs:
                self.process = subprocess.Popen(
                    command,
                    pass_fds=(theirs.fileno(),),
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,  # a Ctrl-C in our terminal is not for it: it ends when we are gone
                )
        except OSError as error:
            self._link.close()
            raise NoHelper("no helper process can be started") from error
        try:
            receive(self._link, START)
        except (OSError, EOFError) as error:
            self.end()
            raise NoHelper("no helper process can be started") from error

    @property
    def is_fit(self) -> bool:
        return self.process.poll() is None

    def do(self, task: str, text: str | bytes, words: dict[str, Any], cpu: float) -> HelperResult:
        """Have the process carry out a task, and return its answer. Raises Overrun; the process has then ended."""
        is_text, raw = pack(text)
        try:
            send(self._link, {"task": task, "words": words, "is_text": is_text, "cpu": cpu}, raw)
            head, answer = receive(self._link, cpu * SLACK)
        except TimeoutError:
            self.end()
            raise Overrun(cpu) from None
        except (OSError, EOFError):
            self.end()
            raise Overrun(cpu, "" if self.process.returncode == -signal.SIGPROF else MEMORY_SPENT) from None
        if head.get("failed") == "memory":
            self.end()
            raise Overrun(cpu, MEMORY_SPENT)
        if "failed" in head:
            raise RuntimeError(f"{task}: {head['failed']}")
        return HelperResult(json.loads(answer), float(head["cpu"]))

    def end(self) -> None:
        """End the helper, which holds nothing that has to be put away."""
        self._link.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(GOING)  # one that ended by itself says how
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait(START)


HELPERS = 2
WAITING = 6  # that wait for a helper; each is a thread of the site
MAX_WAIT = 4.0  # seconds that one waits


class Pool:
    """Safe to share between threads. ``most``: helpers, of ``memory`` bytes each; the others as above."""

    def __init__(
        self, most: int = HELPERS, *, waiting: int = WAITING, max_wait: float = MAX_WAIT, memory: int = MEMORY
    ) -> None:
        self._most, self._waiting, self._max_wait, self._memory = most, waiting, max_wait, memory
        self.begin()

    def begin(self) -> None:
        """Begin as a process: the helpers of a parent are its own."""
        self._changed = threading.Condition()
        self._at_it: set[str] = set()
        self._next: set[str] = set()  # those of whom one task waits for the one before
        self._free: list[Helper] = []
        self._out = self._queued = 0

    def run(self, task: str, text: str | bytes, *, who: str, cpu: float, **words: Any) -> HelperResult:
        """Run a task. ``who``: whose task it is, "" for nobody's; ``cpu``: seconds of processor time that it may take;
        ``words``: its parameters. Raises AtOnce, NoHelper, Overrun.
        """
        with self.turn(who), self.helper() as helper:
            return helper.do(task, text, words, cpu)

    def run_if_free(self, task: str, text: str | bytes, *, who: str, cpu: float, **words: Any) -> HelperResult | None:
        """Run a task where a started helper is free and the person has no other under way; else return None at once.
        Raises like ``run``."""
        with self._changed:
            if not self._free or who in self._at_it:
                return None
        return self.run(task, text, who=who, cpu=cpu, **words)

    @contextmanager
    def turn(self, who: str) -> Iterator[None]:
        """Let nothing else of the same person begin meanwhile. One more of theirs waits for it, as a page does that is
        loaded again while its diagram is drawn. Raises AtOnce."""
        with self._changed:
            if who in self._at_it:
                self._wait_for_turn(who)
            if who:
                self._at_it.add(who)
        try:
            yield
        finally:
            with self._changed:
                self._at_it.discard(who)
                self._changed.notify_all()

    def _wait_for_turn(self, who: str) -> None:
        if who in self._next:
            raise AtOnce
        self._next.add(who)
        try:
            if not self._changed.wait_for(lambda: who not in self._at_it, self._max_wait):
                raise AtOnce
        finally:
            self._next.discard(who)

    def end(self) -> None:
        """End the helpers that are free."""
        with self._changed:
            free, self._free = self._free, []
        for helper in free:
            helper.end()

    @contextmanager
    def helper(self) -> Iterator[Helper]:
        """Lend a helper that nobody else has meanwhile. Raises NoHelper."""
        helper = self._take_free()
        try:
            if helper is not None and not helper.is_fit:
                helper.end()
                helper = None
            helper = helper or Helper(self._memory)
            yield helper
        finally:
            if helper is not None and not helper.is_fit:
                helper.end()
                helper = None
            with self._changed:
                self._out -= 1
                if helper is not None:
                    self._free.append(helper)
                self._changed.notify_all()

    def _take_free(self) -> Helper | None:
        """Take a helper that is free; None where one is to be started. Raises NoHelper."""
        until = time.monotonic() + self._max_wait
        with self._changed:
            if self._out >= self._most and self._queued >= self._waiting:
                raise NoHelper("too many wait already")
            self._queued += 1
            try:
                while self._out >= self._most:
                    if not self._changed.wait(max(0.0, until - time.monotonic())) and self._out >= self._most:
                        raise NoHelper("all helpers are busy")
            finally:
                self._queued -= 1
            self._out += 1
            return self._free.pop() if self._free else None


pool = Pool()
run = pool.run
os.register_at_fork(after_in_child=pool.begin)
