"""The file of an export: JSON lines in gzip chunks, with a SHA-256 for each chunk and for the whole.

The file is a sequence of gzip members, so ``zcat FILE`` shows its lines. One member is one chunk; the last line of a
chunk has the SHA-256 of the chunk's other lines, and of all such lines of the file up to there. The first line of the
file is the header, the last one says that the file is complete. A file that is cut or damaged is refused, and the error
names the chunk and the byte where it begins. ``docs/operate.md`` describes the lines.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from machines.engine.errors import BadInput

FORMAT = 1
NAME = "signalbox machine"
MAX_CHUNK = 64 * 1024 * 1024  # bytes of the lines of a chunk: a larger one is refused, not unpacked
CHUNK_LINES = 500
CHUNK_BYTES = 4 * 1024 * 1024  # a chunk ends when it holds as much
READ = 1024 * 1024  # bytes
GZIP = zlib.MAX_WBITS | 16
LEVEL = 6


class Damaged(BadInput):
    """A file of an export is cut, damaged or none. ``chunk`` (from 1) and ``offset``, in bytes, say where."""

    code = "SB461"
    shown = ("chunk", "offset")

    def __init__(self, path: Path, what: str, *, chunk: int = 0, offset: int = 0) -> None:
        self.chunk, self.offset = chunk, offset
        where = f" in chunk {chunk}, at byte {offset}" if chunk else ""
        super().__init__(f"{path}: {what}{where}; nothing of it was written")


@dataclass(frozen=True, slots=True)
class TransferHeader:
    """The first line of a file. ``transfer``: an id of this export; ``partitions``: of the machine; ``created``: ms."""

    machine: str
    transfer: str
    partitions: int
    created: int
    format: int = FORMAT

    def as_line(self) -> dict[str, Any]:
        return {"kind": "header", "name": NAME, **asdict(self)}

    @classmethod
    def read(cls, path: Path, line: dict[str, Any]) -> Self:
        """Read the first line. Raises Damaged."""
        if line.get("kind") != "header" or line.get("name") != NAME:
            raise Damaged(path, "this is no export of a machine")
        if line.get("format") != FORMAT:
            raise Damaged(path, f"its format is {line.get('format')!r}; this release reads format {FORMAT}")
        names = {"machine": str, "transfer": str, "partitions": int, "created": int}
        for name, kind in names.items():
            if type(line.get(name)) is not kind:
                raise Damaged(path, f"the header has no {name}")
        if not (line["transfer"].isalnum() and len(line["transfer"]) <= 64):
            raise Damaged(path, "the header has no transfer")
        return cls(**{name: line[name] for name in names})


class ChunkWriter:
    """Appends chunks to a file. Lines wait in memory until a chunk is full or ``flush`` is called."""

    def __init__(self, path: Path) -> None:
        """Begin ``path`` anew."""
        self.number = 0
        self._whole = hashlib.sha256()
        self._waiting: list[str] = []
        self._bytes = 0
        self._file: BinaryIO = path.open("wb")

    def add(self, line: dict[str, Any]) -> None:
        self.add_text(json.dumps(line, ensure_ascii=False, separators=(",", ":")))

    def add_text(self, text: str) -> None:
        """Add a line that is JSON already."""
        self._waiting.append(text)
        self._bytes += len(text)
        if len(self._waiting) >= CHUNK_LINES or self._bytes >= CHUNK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the lines that wait as one chunk."""
        if not self._waiting:
            return
        body = "".join(line + "\n" for line in self._waiting).encode()
        self._whole.update(body)
        self.number += 1
        trailer = {
            "kind": "chunk",
            "number": self.number,
            "lines": len(self._waiting),
            "sha256": hashlib.sha256(body).hexdigest(),
            "whole": self._whole.hexdigest(),
        }
        packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        text = body + json.dumps(trailer, separators=(",", ":")).encode() + b"\n"
        self._file.write(packer.compress(text) + packer.flush())
        self._file.flush()
        self._waiting, self._bytes = [], 0

    def close(self) -> None:
        """Write what waits, and bring the file to the disk."""
        self.flush()
        os.fsync(self._file.fileno())
        self._file.close()


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk: its number from 1, its lines, the digest of all lines up to its end, and where it begins and ends."""

    number: int
    lines: list[dict[str, Any]]
    texts: list[str]
    whole: Any
    start: int
    end: int


def read_chunks(path: Path) -> Iterator[Chunk]:
    """Yield the chunks of a file, each checked by its digests. Raises Damaged."""
    whole, number, start = hashlib.sha256(), 0, 0
    with path.open("rb") as file:
        while True:
            file.seek(start)
            if not file.peek(1):
                return
            number += 1
            try:
                body, length = _unpack(file)
                chunk = _check(body, number, whole, start, start + length)
            except ValueError as error:
                raise Damaged(path, str(error), chunk=number, offset=start) from None
            whole, start = chunk.whole.copy(), chunk.end
            yield chunk


def _unpack(file: BinaryIO) -> tuple[bytes, int]:
    """Return the text of the gzip member that begins here, and its packed length. Raises ValueError."""
    unpacker, parts, size, read = zlib.decompressobj(GZIP), [], 0, 0
    try:
        while not unpacker.eof:
            packed = unpacker.unconsumed_tail or file.read(READ)
            if not packed:
                raise ValueError("the file ends inside a chunk: it was cut")
            read += 0 if unpacker.unconsumed_tail else len(packed)
            part = unpacker.decompress(packed, READ)
            parts.append(part)
            size += len(part)
            if size > MAX_CHUNK:
                raise ValueError(f"a chunk has more than {MAX_CHUNK} bytes")
    except zlib.error as error:
        raise ValueError(f"the file is damaged ({error})") from None
    return b"".join(parts), read - len(unpacker.unused_data)


def _check(body: bytes, number: int, whole: Any, start: int, end: int) -> Chunk:
    """Check a chunk by its last line. Raises ValueError."""
    at = body.rfind(b"\n", 0, len(body) - 1) + 1
    lines, whole = body[:at], whole.copy()
    whole.update(lines)
    trailer = _parse(body[at:])
    if trailer.get("kind") != "chunk" or trailer.get("number") != number:
        raise ValueError(f"chunk {number} was expected")
    if trailer.get("sha256") != hashlib.sha256(lines).hexdigest():
        raise ValueError("the SHA-256 of the chunk differs from its lines")
    if trailer.get("whole") != whole.hexdigest():
        raise ValueError("the SHA-256 of the file differs: a chunk before this one is missing or was exchanged")
    texts = lines.decode().split("\n")[:-1]
    return Chunk(number, [_parse(text) for text in texts], texts, whole, start, end)


def _parse(text: bytes | str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("a line is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("a line is not an object")
    return found
