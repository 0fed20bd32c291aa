"""The facts of each step and each instance, in Parquet files, written and read by DuckDB.

The manifest of a machine names the files that count, and how far each partition was read. A commit writes files under
new names, and then replaces the manifest in one act (``places``): facts and marks never differ, whenever the process
ends. Readers open no file that can change, so no process waits; files that were merged stay for some minutes
for readers that hold an older manifest.

A step names its instance by a number, and by another one its shape: source, target, event and so on, which many steps
share. The row of an instance is written anew with each batch of its steps: of the rows of ``deltas`` the one of the
highest revision counts, and it counts more than that of ``base``.
"""

from __future__ import annotations

import csv
import functools
import json
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import connections

from machines.conf import conf, extras
from machines.engine import limits

from .errors import BadSearch, InsightOff, StoreUnavailable
from .places import PRIVATE, DatabasePlace, FolderPlace

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")
FORMAT = 3
THREADS = 2
MEMORY = "1GB"  # of DuckDB in one process; what does not fit goes to temporary files
PARQUET = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"  # the file is there, with its mode
GRACE = 600.0  # seconds for which a merged file stays for readers
FAN = 8  # step files of one size class that are merged into one
LONGEST_COPY = 300.0  # seconds: GRACE is longer
ANSWERS = 8  # that are remembered
ATTEMPTS = 5  # to erase while steps are added
LARGEST = 4_000_000  # rows of a step file that is merged no further: about 60 MB
MOST_DELTA = 100_000  # rows of the deltas that go into the base, or a fifth of it where that is more
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "steps": {
        "n": "INTEGER", "revision": "INTEGER", "ms": "BIGINT", "event": "VARCHAR", "source": "VARCHAR",
        "target": "VARCHAR", "transitions": "VARCHAR", "waited": "BIGINT", "actor": "VARCHAR", "version": "INTEGER",
        "kind": "VARCHAR", "queue": "VARCHAR", "handler": "VARCHAR", "worker": "VARCHAR", "attempt": "INTEGER",
        "queued": "BIGINT", "retried": "BIGINT", "ran": "BIGINT",
    },
    "instances": {
        "n": "INTEGER", "instance": "VARCHAR", "created": "BIGINT", "revision": "INTEGER", "first": "BIGINT",
        "last": "BIGINT", "entered": "BIGINT", "state": "VARCHAR", "version": "INTEGER", "ended": "BOOLEAN",
        "path": "VARCHAR", "visited": "VARCHAR", "loops": "INTEGER", "steps": "INTEGER", "lost": "INTEGER",
        "data": "VARCHAR", "tags": "VARCHAR",
    },
}  # fmt: skip
"""Kind of facts -> column -> type. ``path`` and ``visited`` are states, ``tags`` those of
the state, that tabs separate; ``data`` is JSON; ``ended`` is NULL where the instance was deleted before it ended.
``queued``, ``retried``, ``ran``: ms of the job that a step ends until it was first taken, from then until it was last
taken, and since; NULL where they are unknown."""
SHAPE = ("event", "source", "target", "transitions", "version", "kind", "queue", "handler")
FILES: Mapping[str, Sequence[str]] = {
    "steps": ("n", "revision", "ms", "waited", "actor", "worker", "attempt", "queued", "retried", "ran", "shape"),
    "shapes": ("shape", *SHAPE),
    "instances": tuple(COLUMNS["instances"]),
}
"""Kind of file -> its columns. ``steps`` joined with ``shapes`` are the columns of COLUMNS."""
STEPS = f"(SELECT {', '.join(COLUMNS['steps'])} FROM {{rows}} JOIN {{shapes}} USING (shape))"
FILE = re.compile(r"(steps|shapes|instances|copy)-[0-9a-f]{12}\.(parquet|tmp)")  # names of facts, and of drafts
NEWEST = "revision DESC, ended NULLS FIRST"
ORDER = {"steps": "n, revision", "shapes": "shape", "instances": "n"}


@dataclass(frozen=True, slots=True)
class Manifest:
    """``steps``, ``shapes``, ``deltas``, ``base``: files with their rows; ``old``: merged files and when; ``marks``:
    partition -> ms up to which it was read; ``number``: of the next instance; ``swept``: ms of the last look at all
    instances; ``lost``: steps that were gone before they were read; ``drifts``: rule -> fields of its ``Drift`` at
    ``drifted`` (ms); ``hidden``: sensitive fields, which the data lack."""

    format: int = FORMAT
    generation: int = 0
    steps: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, int] = field(default_factory=dict)
    base: Mapping[str, int] = field(default_factory=dict)
    deltas: Mapping[str, int] = field(default_factory=dict)
    old: Mapping[str, float] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)
    archived: int = 0
    swept: int = 0
    number: int = 1
    lost: int = 0
    drifts: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    drifted: int = 0
    hidden: Sequence[str] = ()

    def check(self) -> None:
        """Raise TypeError where a part is of another type, or a file is named as no file of facts is."""
        for part in fields(self):
            value = getattr(self, part.name)
            kinds = list if part.name == "drifts" else (int, float)
            if part.name == "hidden":
                is_right = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
            elif part.default_factory is not MISSING:
                is_right = isinstance(value, dict) and all(isinstance(one, kinds) for one in value.values())
            else:
                is_right = isinstance(value, int)
            if not is_right:
                raise TypeError(f"{part.name} is {value!r}")
        if foreign := [name for name in self.files if not FILE.fullmatch(name)]:
            raise TypeError(f"{foreign[0]!r} is no name of a file of facts")

    @property
    def count(self) -> int:
        """Return the number of steps."""
        return sum(self.steps.values())

    @property
    def files(self) -> set[str]:
        return {*self.steps, *self.shapes, *self.base, *self.deltas, *self.old}

    @property
    def read_up_to(self) -> int:
        return min(self.marks.values(), default=0)


class Store:
    """The facts in one place: a folder, or what has one for its files."""

    def __init__(self, place: Path | FolderPlace) -> None:
        self._place = FolderPlace(place) if isinstance(place, Path) else place
        self._folder = self._place.folder
        self._tidied: dict[str, tuple[int, float]] = {}  # machine -> generation, minute
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._answers: dict[Hashable, Any] = {}

    def folder(self, machine: str) -> Path:
        return self._folder / machine

    def machines(self) -> list[str]:
        """List the machines that have facts."""
        with _reporting(self._folder):
            return self._place.machines()

    def manifest(self, machine: str) -> Manifest:
        """Read the manifest of a machine; an empty one where there are no facts yet."""
        path = self.folder(machine)
        with _reporting(path):
            try:
                if problem := limits.check_machine_name(machine):
                    raise ValueError(f"the name of the machine {problem}")
                if (text := self._place.read(machine)) is None:
                    return Manifest()
                held = json.loads(text)
                if held["format"] != FORMAT:
                    raise StoreUnavailable(f"{path} is of format {held['format']}; this release reads {FORMAT}")
                found = Manifest(**held)
                found.check()
                return found
            except (ValueError, KeyError, TypeError) as error:
                raise StoreUnavailable(f"the manifest of {path} is damaged or not one of insight: {error}") from error

    # Reading

    def ask(
        self, machine: str, sql: str, *, values: Sequence[Any] = (), manifest: Manifest | None = None,
        longest: float | None = None,
    ) -> list[Any]:  # fmt: skip
        """Return the rows of a query, in which ``{steps}`` and ``{instances}`` are the facts of the machine; ``{rows}``
        are steps with the number of their shape alone, and ``{shapes}`` these. Raises BadSearch where it takes longer
        than ``longest`` seconds."""
        for attempt in (0, 1):
            known = manifest or self.manifest(machine)
            try:
                with _reporting(self.folder(machine)):
                    text = self._fill(machine, known, sql)
                    self._tidy(machine, known)
                    with _interrupting(self._cursor(), longest) as cursor:
                        return cursor.execute(text, list(values)).fetchall()
            except StoreUnavailable:
                is_worth = self._place.forget(machine) or manifest is not None
                if attempt or not (is_worth or self.manifest(machine).generation != known.generation):
                    raise
                manifest = None  # its files were merged and removed: the newest one has others
        raise AssertionError

    def _fill(self, machine: str, known: Manifest, sql: str) -> str:
        """Name the files in a query."""
        text = sql.replace("{steps}", STEPS)
        for name, table in (("rows", lambda: self._table(machine, "steps", known.steps)),
                            ("shapes", lambda: self._table(machine, "shapes", known.shapes)),
                            ("instances", lambda: self._instances(machine, known))):  # fmt: skip
            if f"{{{name}}}" in text:
                text = text.replace(f"{{{name}}}", table())
        return text

    def _tidy(self, machine: str, known: Manifest) -> None:
        """Remove copies that nobody needs, once for each manifest and each minute."""
        latest = known.generation, time.time() // 60
        if self._place.has_copies and known.generation and self._tidied.get(machine) != latest:
            self._tidied[machine] = latest
            self.folder(machine).mkdir(parents=True, exist_ok=True)  # facts may have no files
            self._clean(machine, known, time.time())
            self._place.tidy(machine)

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for this key before, or make it now. The latest ones are kept."""
        found = self._answers.get(key) or make()
        self._answers.pop(key, None)
        self._answers[key] = found
        for old in list(self._answers)[:-ANSWERS]:
            self._answers.pop(old, None)
        return found

    def copy(self, machine: str, file: Path) -> int:
        """Copy the steps of a machine, with the id of each instance, into one Parquet file; return how many. Raises
        BadSearch where that takes longer than five minutes."""
        draft = self.folder(machine) / f"copy-{secrets.token_hex(6)}.tmp"
        sql = (
            "COPY (SELECT i.instance, i.created, s.* EXCLUDE (n) FROM {steps} s JOIN {instances} i USING (n) "
            f"ORDER BY i.n, s.revision) TO {quote(str(draft))} ({PARQUET})"
        )
        with _reporting(file):
            draft.parent.mkdir(parents=True, exist_ok=True)
            draft.touch(PRIVATE, exist_ok=False)
            try:
                rows = self.ask(machine, sql, longest=LONGEST_COPY)
                shutil.copyfile(draft, file)
            finally:
                draft.unlink(missing_ok=True)
        return int(rows[0][0])

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._connection is None:
                spill = tempfile.mkdtemp(prefix="signalbox-insight-")
                weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
                self._connection = _connect(self._folder, spill)
            return self._connection.cursor()

    def _instances(self, machine: str, manifest: Manifest) -> str:
        base = self._table(machine, "instances", manifest.base)
        if not manifest.deltas:
            return base
        deltas = self._table(machine, "instances", manifest.deltas)
        newest = f"SELECT * FROM {deltas} QUALIFY row_number() OVER (PARTITION BY n ORDER BY {NEWEST}) = 1"
        if not manifest.base:
            return f"({newest})"
        return f"({newest} UNION ALL SELECT * FROM {base} WHERE n NOT IN (SELECT n FROM {deltas}))"

    def _table(self, machine: str, kind: str, files: Collection[str]) -> str:
        paths = ", ".join(quote(str(self.folder(machine) / name)) for name in files)
        if paths:
            self._place.bring(machine, files)
            return f"read_parquet([{paths}])"
        types = {**COLUMNS["steps"], "shape": "INTEGER"} if kind != "instances" else COLUMNS[kind]
        columns = ", ".join(f"NULL::{types[name]} AS {name}" for name in FILES[kind])
        return f"(SELECT {columns} WHERE false)"

    # Writing

    @contextmanager
    def _writing(self, machine: str) -> Iterator[None]:
        """Have the folder of a machine. Raises StoreUnavailable in place of other errors within."""
        with _reporting(self.folder(machine)):
            self.folder(machine).mkdir(parents=True, exist_ok=True)
            yield

    def append(
        self, machine: str, known: Manifest, steps: Sequence[Sequence[Any]], instances: Sequence[Sequence[Any]],
        **changes: Any,
    ) -> Manifest:  # fmt: skip
        """Add rows, in the order of COLUMNS, and change other parts of the manifest, all or nothing; return it.
        Raises StoreUnavailable, also where another process changed the facts since ``known`` was read."""
        with self._writing(machine):
            new = known
            if steps:
                new = self._write(machine, "steps", steps, lambda rows: self._write_steps(machine, new, rows))
            if instances:
                new = self._write(machine, "instances", instances, lambda rows: replace(
                    new, deltas={**new.deltas, **self._copy(machine, "instances", rows)}))  # fmt: skip
            return self._commit(machine, known, replace(new, **changes))

    def _write_steps(self, machine: str, known: Manifest, rows: str) -> Manifest:
        """Write steps, and the shapes that are new."""
        shape, held = ", ".join(SHAPE), self._table(machine, "shapes", known.shapes)
        fresh = self._copy(
            machine, "shapes", f"SELECT (row_number() OVER () + coalesce((SELECT max(shape) FROM {held}), 0))::INTEGER "
            f"AS shape, * FROM (SELECT {shape} FROM ({rows}) EXCEPT SELECT {shape} FROM {held})",
        )  # fmt: skip
        shapes = {**known.shapes, **fresh}
        joined = f"({rows}) JOIN {self._table(machine, 'shapes', shapes)} USING ({shape})"
        files = self._copy(machine, "steps", f"SELECT {', '.join(FILES['steps'])} FROM {joined}")
        return replace(known, steps={**known.steps, **files}, shapes=shapes)

    def _write(
        self, machine: str, kind: str, rows: Sequence[Sequence[Any]], write: Callable[[str], Manifest]
    ) -> Manifest:
        """Give rows as a query to what writes them."""
        draft = self.folder(machine) / f"{kind}-{secrets.token_hex(6)}.tmp"
        types = ", ".join(f"{quote(name)}: {quote(type)}" for name, type in COLUMNS[kind].items())
        names = (f"coalesce({n}, '') AS {n}" if t == "VARCHAR" else n for n, t in COLUMNS[kind].items())
        try:
            draft.touch(PRIVATE, exist_ok=False)
            with draft.open("w", encoding="utf-8", errors="replace", newline="") as output:
                csv.writer(output, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
            source = (
                f"read_csv({quote(str(draft))}, header=false, auto_detect=false, delim=',', quote='\"', escape='\"', "
                f"new_line='\\n', max_line_size={64 * 1024 * 1024}, parallel=false, columns={{{types}}})"
            )
            return write(f"SELECT {', '.join(names)} FROM {source}")
        finally:
            draft.unlink(missing_ok=True)

    def _copy(self, machine: str, kind: str, query: str) -> dict[str, int]:
        """Write the rows of a query as a new file, synced; none where there are no rows."""
        name = f"{kind}-{secrets.token_hex(6)}.parquet"
        path = self.folder(machine) / name
        sql = f"COPY ({query} ORDER BY {ORDER[kind]}) TO {quote(str(path))} ({PARQUET})"
        try:
            path.touch(PRIVATE, exist_ok=False)
            ((count,),) = self._cursor().execute(sql).fetchall()
            if not count:
                path.unlink()
                return {}
            self._place.keep(path)
        except BaseException:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise
        return {name: count}

    def _commit(self, machine: str, known: Manifest, new: Manifest, *, is_alone: bool = False) -> Manifest:
        """Write the manifest. ``is_alone``: remove all other files at once, also those that a batch being written has:
        it cannot be added any more."""
        new = replace(new, generation=known.generation + 1)
        found = {path.name for path in self._list_files(machine)} if is_alone else set[str]()
        added, text = new.files - known.files, json.dumps(asdict(new))
        if not self._place.replace(machine, known.generation, text, added, new.files):
            self._unlink(machine, added - self.manifest(machine).files)  # two adoptions have the same names
            raise StoreUnavailable(f"another process changed the facts of {machine}; this batch was not added")
        self._unlink(machine, found - new.files)
        return new

    def _unlink(self, machine: str, names: Iterable[str]) -> None:
        for name in names:
            (self.folder(machine) / name).unlink(missing_ok=True)

    def adopt(self, machine: str, other: Store) -> int:
        """Copy the facts of a machine from another store, and how far it read; return how many steps. Raises
        BadSearch where this store has facts of it, StoreUnavailable."""
        known = self.manifest(machine)
        if known.generation:
            raise BadSearch(f"there are facts of {machine} already")
        held = replace(other.manifest(machine), old={})
        with self._writing(machine):
            other._place.bring(machine, held.files)
            for name in held.files:
                path = self.folder(machine) / name
                path.touch(PRIVATE)
                shutil.copyfile(other.folder(machine) / name, path)
                self._place.keep(path)
            return self._commit(machine, known, held).count

    def compact(self, machine: str, known: Manifest | None = None, *, now: float | None = None) -> Manifest:
        """Merge small files, and remove those that no reader needs; return the manifest. Raises StoreUnavailable, also
        where another process changed the facts since ``known`` was read."""
        now = time.time() if now is None else now
        with _reporting(self.folder(machine)):
            known = known or self.manifest(machine)
            new = self._merge_steps(machine, self._merge_instances(machine, known, now), now)
            kept = {name: since for name, since in new.old.items() if now - since < GRACE}
            if new == known and kept == known.old:
                return known
            new = self._commit(machine, known, replace(new, old=kept))
            self._clean(machine, new, now)
        return new

    def _merge_steps(self, machine: str, known: Manifest, now: float) -> Manifest:
        if len(known.shapes) >= FAN:
            shapes = self._copy(machine, "shapes", f"SELECT * FROM {self._table(machine, 'shapes', known.shapes)}")
            known = replace(known, shapes=shapes, old={**known.old, **dict.fromkeys(known.shapes, now)})
        classes: dict[int, list[str]] = {}
        for name, rows in known.steps.items():
            if rows < LARGEST:
                classes.setdefault(len(f"{rows:o}"), []).append(name)  # octal: a class holds sizes up to FAN times
        some = next((names for names in classes.values() if len(names) >= FAN), None)
        if some is None:
            return known
        merged = self._copy(machine, "steps", f"SELECT * FROM {self._table(machine, 'steps', some)}")
        left = {name: rows for name, rows in known.steps.items() if name not in some}
        return replace(known, steps={**left, **merged}, old={**known.old, **dict.fromkeys(some, now)})

    def _merge_instances(self, machine: str, known: Manifest, now: float) -> Manifest:
        is_large = sum(known.deltas.values()) > max(MOST_DELTA, sum(known.base.values()) // 5)
        if not is_large and len(known.deltas) < FAN:
            return known
        used = replace(known, base=known.base if is_large else {})
        merged = self._copy(machine, "instances", f"SELECT * FROM {self._instances(machine, used)}")
        old = {**known.old, **dict.fromkeys([*known.deltas, *used.base], now)}
        return replace(known, base=merged, deltas={}, old=old) if is_large else replace(known, deltas=merged, old=old)

    def _clean(self, machine: str, known: Manifest, now: float) -> None:
        """Remove files that the manifest does not name and that nobody writes any more."""
        for path in self._list_files(machine):
            with suppress(FileNotFoundError):
                if path.name not in known.files and now - path.stat().st_mtime > GRACE:
                    path.unlink()

    def _list_files(self, machine: str) -> list[Path]:
        return [path for path in self.folder(machine).iterdir() if FILE.fullmatch(path.name)]

    def hide(self, machine: str, known: Manifest, fields: Iterable[str]) -> Manifest:
        """Write the data of all instances anew, without some fields, and remove the files that had them."""
        hidden = sorted(fields)
        less = f"json_merge_patch(data, {quote(json.dumps(dict.fromkeys(hidden)))})::VARCHAR"
        with self._writing(machine):
            rows = f"SELECT * REPLACE ({less} AS data) FROM {self._instances(machine, known)}"
            base = self._copy(machine, "instances", rows) if known.base or known.deltas else {}
            new = replace(known, base=base, deltas={}, old={}, hidden=hidden)
            return self._commit(machine, known, new, is_alone=True)

    def find(self, machine: str, texts: Iterable[str], instances: Iterable[str] = ()) -> list[tuple[str, int, str]]:
        """Return id, time of creation (ms) and data (JSON) of some instances, and of those that hold one of these texts
        in id or data."""
        return self.ask(
            machine,
            "SELECT DISTINCT instance, created, data FROM {instances} WHERE list_contains(?::VARCHAR[], instance) OR "
            "EXISTS (FROM (SELECT unnest(?::VARCHAR[]) AS held) "
            "WHERE contains(data, held) OR contains(instance, held))",
            values=[list(instances), list(texts)],
        )  # fmt: skip

    def erase(self, machine: str, instances: Iterable[str]) -> int:
        """Write the files anew, without some instances, and remove all others; return how many steps went. It begins
        again where steps were added meanwhile. What was read before, and is added later, is refused."""
        doomed = list(instances)
        for attempt in range(ATTEMPTS):
            known = self.manifest(machine)
            try:
                return known.count - self._remove(machine, known, doomed).count
            except StoreUnavailable:
                if attempt == ATTEMPTS - 1 or self.manifest(machine).generation == known.generation:
                    raise
        raise AssertionError

    def _remove(self, machine: str, known: Manifest, instances: Sequence[str]) -> Manifest:
        doomed = f"instance IN ({', '.join(map(quote, instances)) or 'NULL'})"
        with self._writing(machine):
            all_ = self._instances(machine, known)
            new, numbers = known, f"SELECT n FROM {all_} WHERE {doomed}"
            if self._cursor().execute(f"{numbers} LIMIT 1").fetchall():
                rows, shapes = (self._table(machine, kind, getattr(known, kind)) for kind in ("steps", "shapes"))
                steps = self._copy(machine, "steps", f"SELECT * FROM {rows} WHERE n NOT IN ({numbers})")
                used = f"SELECT shape FROM {self._table(machine, 'steps', steps)}"
                new = replace(
                    known, steps=steps, deltas={}, old={},
                    shapes=self._copy(machine, "shapes", f"SELECT * FROM {shapes} WHERE shape IN ({used})"),
                    base=self._copy(machine, "instances", f"SELECT * FROM {all_} WHERE NOT {doomed}"),
                )  # fmt: skip
            return self._commit(machine, known, new, is_alone=True)


def get_store() -> Store:
    """Return the store of this installation. Raises InsightOff where it has none."""
    if conf.INSIGHT is None:
        raise InsightOff('insight is off: set SIGNALBOX["INSIGHT"] to a folder that workers and web processes share')
    if missing := extras.list_missing("insight"):
        raise InsightOff(extras.explain("insight", "insight", missing))
    return open_store(conf.INSIGHT)


def open_store(place: Path | str) -> Store:
    """Open a folder, or ``database:`` and an alias. Raises InsightOff where no database has this alias."""
    if isinstance(place, Path):
        return _open(place)
    alias = place.partition(":")[2]
    if alias not in connections:
        raise InsightOff(f"DATABASES has no {alias!r}, in which the facts of insight are to be kept")
    return _open(conf.HOME / "insight-cache" / alias, alias)


@functools.lru_cache(maxsize=4)
def _open(folder: Path, alias: str = "") -> Store:
    return Store(DatabasePlace(alias, folder) if alias else folder)


def quote(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _connect(folder: Path, spill: str) -> duckdb.DuckDBPyConnection:
    """Open a database in memory that reads and writes below the folder, and nowhere else. ``spill``: of this process
    alone, as DuckDB names files there by the id of the process, and containers have equal ones. Joins are done as they
    are written, the smaller side to the right: DuckDB takes steps of a filter for few, and would hold them all."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {
        "threads": THREADS, "memory_limit": MEMORY, "temp_directory": spill, "preserve_insertion_order": False,
        "disabled_optimizers": "join_order,build_side_probe_side",
        "autoinstall_known_extensions": False, "autoload_known_extensions": False,
    }  # fmt: skip
    connection = duckdb.connect(config=options)
    connection.execute(f"SET allowed_directories = [{quote(f'{folder}{os.sep}')}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


@contextmanager
def _interrupting(cursor: duckdb.DuckDBPyConnection, longest: float | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a cursor whose query ends after ``longest`` seconds. Raises BadSearch then."""
    if longest is None:
        yield cursor
        return
    import duckdb

    done = threading.Event()

    def watch(pause: float = longest) -> None:
        while not done.wait(pause):
            cursor.interrupt()
            pause = 0.1  # seconds: one that comes before the query begins is lost

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield cursor
    except duckdb.InterruptException as error:
        raise BadSearch("the answer takes too long: ask about fewer instances, or at a quieter time") from error
    finally:
        done.set()


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    """Raise StoreUnavailable in place of what the system or DuckDB say of a file."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror or error}") from error
    except Exception as error:
        if type(error).__module__ not in ("duckdb", "_duckdb"):
            raise
        raise StoreUnavailable(
            f"the facts in {path} cannot be read or written: {str(error).splitlines()[0]}"
        ) from error
