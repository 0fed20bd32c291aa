"""Where in a definition something stands, as people write it."""

from __future__ import annotations

import json
import re

Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_LONGEST = 60  # characters of one name that are shown


def render(path: Path) -> str:
    """``states.Waiting.on.entitle[0].target``; odd names in brackets: ``states["on hold"].on["door.*"]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part) and len(part) <= _LONGEST:
            text += f".{part}" if text else part
        else:
            text += f"[{quote(part)}]"
    return text


def quote(text: str) -> str:
    """A name in double quotes, cut when long; nothing in it can move a cursor or fail to be encoded."""
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1]
        for character in json.dumps(shown, ensure_ascii=False)
    )
