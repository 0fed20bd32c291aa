"""Where facts are kept: in a folder that all processes share, or in a database, of which each host has copies.

Both hold files that never change, and one manifest for each machine, which names them. Only who knows the latest
manifest replaces it, so that no two writers add to the same facts.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from django.db import Error, connections, transaction

from .errors import StoreUnavailable
from .models import InsightManifest, InsightPart

MANIFEST = "manifest.json"
PRIVATE = 0o600
PART = 1024 * 1024  # bytes of a file in one row
STATEMENT_TIMEOUT = 10_000  # ms for a statement of PostgreSQL
LONGEST = 30.0  # seconds of one try to fetch a file, and to wait for a lock
AGAIN = 0.02  # seconds until a lock is tried once more
UNUSED = 86_400.0  # seconds after which the copies of a machine go


class FolderPlace:
    """A disk, or a network file system with locks. The manifest is replaced by one rename.

    ``folder``: where the files of each machine are read and written, below its name. ``has_copies``: these are not the
    only ones.
    """

    has_copies = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def machines(self) -> list[str]:
        """List the machines that have a manifest."""
        return sorted(path.parent.name for path in self.folder.glob(f"*/{MANIFEST}"))

    def read(self, machine: str) -> str | None:
        """Return the text of a manifest."""
        with suppress(FileNotFoundError):
            return (self.folder / machine / MANIFEST).read_text(encoding="utf-8")
        return None

    def bring(self, machine: str, names: Iterable[str]) -> None:
        """Have these files in the folder. Raises StoreUnavailable where one is gone."""

    def keep(self, path: Path) -> None:
        """Take a file that was written, and is named by no manifest yet."""
        _sync(path)

    def forget(self, machine: str) -> bool:
        """Check the files again before they are read next; tell whether that may help."""
        return False

    def replace(self, machine: str, before: int, text: str, added: Iterable[str], files: Iterable[str]) -> bool:
        """Put a manifest in place of that of generation ``before``, with the files that it adds. ``files``: all that it
        names; False, and nothing changes, where another generation is there."""
        folder = self.folder / machine
        draft = folder / f"{MANIFEST}.draft"
        with _locking(folder / "lock"):
            held = self.read(machine)
            if (json.loads(held)["generation"] if held else 0) != before:
                return False
            draft.touch(PRIVATE)
            draft.write_text(text, encoding="utf-8")
            _sync(draft)
            draft.replace(folder / MANIFEST)
            _sync(folder)
        return True

    def tidy(self, machine: str) -> None:
        """Remove what is only copied and was not read for a day."""


class DatabasePlace(FolderPlace):
    """Rows of a database of Django's settings: any number of hosts share it. ``folder``: of this host, for copies of
    the files, each fetched when it is first read, and compared with its digests once in each process."""

    has_copies = True

    def __init__(self, alias: str, folder: Path) -> None:
        super().__init__(folder)
        self._alias = alias
        self._checked: dict[Path, int] = {}  # path -> bytes
        self._manifests = InsightManifest.objects.using(alias)
        self._parts = InsightPart.objects.using(alias)

    def machines(self) -> list[str]:
        with self._asking():
            return list(self._manifests.order_by("machine").values_list("machine", flat=True))

    def read(self, machine: str) -> str | None:
        with self._asking():
            return self._manifests.filter(machine=machine).values_list("text", flat=True).first()

    def bring(self, machine: str, names: Iterable[str]) -> None:
        for path in (self.folder / machine / name for name in names):
            if path not in self._checked or self._checked[path] != _measure(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                with _locking(path.parent / "lock"):
                    self._fetch(machine, path)

    def _fetch(self, machine: str, path: Path) -> None:
        """Copy a file out of the database, unless its copy is whole, and keep the parts that an earlier try fetched."""
        rows, ends = self._parts.filter(machine=machine, name=path.name), time.monotonic() + LONGEST
        with self._asking():
            digests = list(rows.order_by("number").values_list("digest", flat=True))
        if not digests:
            raise StoreUnavailable(f"the database {self._alias} has no file {machine}/{path.name} any more")
        if not _measure(path) or [_digest(part) for part in _read_parts(path)] != digests:
            draft = path.with_suffix(".tmp")
            draft.touch(PRIVATE)
            with draft.open("r+b") as output:
                for number, digest in enumerate(digests):
                    begin = output.tell()
                    if _digest(output.read(PART)) == digest:
                        continue
                    output.seek(begin)
                    output.truncate()
                    with self._asking():
                        body = rows.filter(number=number).values_list("body", flat=True).first()
                    if body is None or _digest(body) != digest:
                        raise StoreUnavailable(f"{machine}/{path.name} in the database {self._alias} is damaged")
                    output.write(body)
                    if time.monotonic() > ends:
                        raise StoreUnavailable(f"the database {self._alias} takes too long to send {path.name}")
                output.truncate()
            draft.replace(path)
        self.keep(path)

    def keep(self, path: Path) -> None:
        self._checked[path] = _measure(path)

    def forget(self, machine: str) -> bool:
        found = [path for path in list(self._checked) if path.parent.name == machine]
        for path in found:
            self._checked.pop(path, None)
        return bool(found)

    def replace(self, machine: str, before: int, text: str, added: Iterable[str], files: Iterable[str]) -> bool:
        new = {"generation": before + 1, "text": text}
        with self._asking(is_writing=True):
            # First of all, as it makes other writers wait.
            if before:
                is_ours = self._manifests.filter(machine=machine, generation=before).update(**new) == 1
            else:
                is_ours = self._manifests.get_or_create(machine=machine, defaults=new)[1]
            if is_ours:
                for name in added:
                    for number, body in enumerate(_read_parts(self.folder / machine / name)):
                        self._parts.create(machine=machine, name=name, number=number, digest=_digest(body), body=body)
                self._parts.filter(machine=machine).exclude(name__in=list(files)).delete()
        return is_ours

    def tidy(self, machine: str) -> None:
        os.utime(self.folder / machine)
        for folder in self.folder.iterdir():
            if time.time() - folder.stat().st_mtime > UNUSED:
                shutil.rmtree(folder, ignore_errors=True)
        for path in [path for path in list(self._checked) if not path.exists()]:
            self._checked.pop(path, None)

    @contextmanager
    def _asking(self, *, is_writing: bool = False) -> Iterator[None]:
        """Raise StoreUnavailable in place of what the database says, and where it does not answer in time."""
        connection = connections[self._alias]
        has_timeout = connection.vendor == "postgresql" and not connection.in_atomic_block
        try:
            with transaction.atomic(using=self._alias) if is_writing or has_timeout else nullcontext():
                if has_timeout:
                    with connection.cursor() as cursor:
                        cursor.execute(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT}")
                yield
        except Error as error:
            raise StoreUnavailable(f"the database {self._alias}: {str(error).partition(chr(10))[0]}") from error


@contextmanager
def _locking(path: Path) -> Iterator[None]:
    """Wait for other processes and threads that have the lock. Raises StoreUnavailable where that takes too long."""
    path.touch(PRIVATE)
    ends = time.monotonic() + LONGEST
    with path.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > ends:
                    raise StoreUnavailable(f"{path} is locked by another process for too long") from None
                time.sleep(AGAIN)
        yield


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _measure(path: Path) -> int:
    """Return the bytes of a file, 0 where there is none."""
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _read_parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while part := file.read(PART):
            yield part


def _digest(part: bytes) -> str:
    return hashlib.sha256(part).hexdigest()
