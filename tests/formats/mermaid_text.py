"""A small, strict reader of those lines of Mermaid that are written: any other line is an error."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LABEL = r"(?:[^\W_]|[ ,.()=/?']|#\d+;|<br/>)*"


@dataclass
class Drawn:
    """``states``: id -> (lines of the label, id of the state around). ``starts`` and ``ends`` hold ids."""

    states: dict[str, tuple[list[str], str | None]] = field(default_factory=dict)
    regions: dict[str | None, int] = field(default_factory=dict)
    arrows: list[tuple[str, str, list[str]]] = field(default_factory=list)
    starts: list[tuple[str | None, str]] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    forks: list[str] = field(default_factory=list)

    def parent(self, id: str) -> str | None:
        return self.states[id][1]


def read_mermaid(text: str) -> Drawn:
    lines = text.splitlines()
    assert lines[0] == lines[2] == "---"
    assert re.fullmatch(r'title: "[^<>&%]*"', lines[1])
    assert lines[3] == "stateDiagram-v2"
    return _read(lines[4:])


def _unescaped(label: str) -> list[str]:
    return [re.sub(r"#(\d+);", lambda m: chr(int(m[1])), line) for line in label.split("<br/>")]


def _read(lines: list[str]) -> Drawn:
    drawn, around = Drawn(), [None]
    patterns = {
        "state": rf'state "({LABEL})" as (s\d+)( {{)?',
        "fork": r"state (t\d+) <<fork>>",
        "close": r"}",
        "region": r"--",
        "start": r"\[\*\] --> (s\d+)",
        "end": r"(s\d+) --> \[\*\]",
        "arrow": rf"([st]\d+) --> ([st]\d+)(?: : ({LABEL}))?",
    }
    for line in lines:
        found = {kind: m for kind, p in patterns.items() if (m := re.fullmatch(p, line.strip()))}
        assert len(found) == 1, f"not one of the lines there are: {line!r}"
        ((kind, match),) = found.items()
        if kind == "state":
            drawn.states[match[2]] = (_unescaped(match[1]), around[-1])
            around += [match[2]] if match[3] else []
        elif kind == "close":
            around.pop()
        elif kind == "region":
            drawn.regions[around[-1]] = drawn.regions.get(around[-1], 1) + 1
        elif kind == "start":
            drawn.starts.append((around[-1], match[1]))
        elif kind == "arrow":
            known = {*drawn.states, *drawn.forks}
            assert {match[1], match[2]} <= known, f"an arrow before its state was declared: {line!r}"
            drawn.arrows.append((match[1], match[2], _unescaped(match[3]) if match[3] else []))
        else:
            (drawn.forks if kind == "fork" else drawn.ends).append(match[1])
    assert around == [None]
    return drawn
