"""What is written on states and edges: a few short lines to read at a glance, and the full text for the tooltip.

How wide text is, how it wraps, and which of its characters can be drawn at all. Measures are in points; one point is
one pixel of an SVG at its own size.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from machines.engine.definitions import InvokeOutline, StateOutline, TransitionOutline
from machines.engine.definitions.reading.transitions import make_default_id

NAME_COLUMNS, NAME_LINES = 24, 3
DETAIL_COLUMNS, DETAIL_LINES = 34, 6
EVENT_COLUMNS = 26
GUARD_COLUMNS, GUARD_LINES = 30, 3
ACTION_COLUMNS, ACTION_LINES = 30, 6

CAUSES = {"done": "done", "state done": "done", "error": "error", "after": "after", "always": "always"}
KINDS = {"parallel": "all that stand in it are active together", "final": "the end"}
ELSE = "[else]"
HISTORIES = {"shallow": "H", "deep": "H*"}
ELLIPSIS = "…"
# What XML 1.0 cannot hold, and NUL, at which Graphviz would stop reading.
UNDRAWABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
WIDE = {"W", "F"}
COMBINING = {"Mn", "Me", "Cf"}
# Widths of the characters of DejaVu Sans Bold, in parts of the font's size: of the fonts that browsers take for a
# sans, the widest. All others are at most as wide as a digit.
_NARROW = dict.fromkeys("ijlI|.,' ", 0.38) | dict.fromkeys("ft!:;[]()-/r", 0.5)
_BROAD = dict.fromkeys("mwMW%@", 1.1) | dict.fromkeys("ABCDGHKNOPQRSTUVXYZ&+=<>", 0.84) | dict.fromkeys("→…", 1.0)
WIDTHS = _NARROW | _BROAD
USUAL = 0.72
_ASCII_WIDTHS = {chr(code): WIDTHS.get(chr(code), USUAL) for code in range(128)}
NAME = 14.0  # font size
NAME_LINE = 18.0
SMALL = 10.0  # font size of details, guards and actions: fixed-width fonts are 0.6 of it
SMALL_COLUMN = 6.0
SMALL_LINE = 13.0
EVENT = 12.0  # font size of the event's name on an edge
PAD = 12.0
LAMP = 4.5  # radius
LAMP_ROOM = 19.0
COUNT_ROOM = 63.0  # "100,000" or "59 min", bold at 13, and air
GRIP = 14.0  # what a state is folded by
GRIP_ROOM = 18.0
STATE_LEAST = 132.0
FLOW_ROOM = 44.0
MARK_ROOM = 15.0  # the sign in front of a line, and air
MORE_ROOM = 14.0  # the sign for what is not written, behind a line
LABEL_GAP = 5.0  # between an edge and its label
QUEUE_HEIGHT = 28.0
QUEUE_END = 14.0  # the slats at the open end of a queue
RIM = 4.0
START = 6.0  # radius
SMALL_START = 5.0  # of the one inside a state
HISTORY = 11.0  # radius
MARGIN = 10.0
HEADING_PAD = 7.0  # above and below what a cluster's heading holds
GRIP_MIDDLE = HEADING_PAD + NAME_LINE / 2  # below the top of a cluster
NODE_DROP = PAD - 1 - HEADING_PAD  # so much lower in a node
CLUSTER_PAD = 14.0  # between a cluster's border and what stands in it
STACK = 4.0  # how far the plates of a folded state stand apart


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a label. ``kind`` is the class it is drawn with; ``mark`` the signs in front of it, if any, with a
    space between; ``more``: there is more than is written."""

    kind: str
    text: str
    mark: str = ""
    more: bool = False

    @property
    def columns(self) -> int:
        return columns(self.text)


def state_name(state: StateOutline) -> list[str]:
    return wrap(state.name, NAME_COLUMNS, NAME_LINES)


def state_details(state: StateOutline) -> list[Line]:
    """List entry and exit actions and the work it asks for, a line each; machines it runs carry the sign of a child."""
    lines = [Line("detail", f"entry / {action}") for action in state.entry]
    lines += [Line("detail", f"exit / {action}") for action in state.exit]
    lines += [_invoke(invoke) for invoke in state.invokes]
    return _limit_lines(lines, DETAIL_COLUMNS, DETAIL_LINES)


def _invoke(invoke: InvokeOutline) -> Line:
    return Line("detail", f"do / {invoke.machine}", "child") if invoke.machine else Line("detail", f"do / {invoke.src}")


def state_title(state: StateOutline) -> str:
    parts = [state.name, state.description, f"tags: {', '.join(state.tags)}" if state.tags else ""]
    parts += [KINDS.get(state.type, "")]
    parts += [f"entry / {action}" for action in state.entry]
    parts += [f"exit / {action}" for action in state.exit]
    parts += [_work(invoke) for invoke in state.invokes]
    return _title(parts)


def history_title(state: StateOutline) -> str:
    inner = "at every depth" if state.history == "deep" else "at its own level"
    return _title([state.name, state.description, f"goes back to where {state.parent} was last, {inner}"])


def transition_lines(transition: TransitionOutline, state: StateOutline) -> list[Line]:
    """Write a transition: ``event``, ``[guard]`` and ``/ action`` in the order and spelling of UML; a timer carries the
    sign of a clock."""
    mark = "clock" if transition.cause == "after" else ""
    lines = [Line("event", shorten(event_text(transition, state), EVENT_COLUMNS), mark)]
    lines += [Line("guard", text) for text in wrap(guard_text(transition, state), GUARD_COLUMNS, GUARD_LINES, " ")]
    actions = [Line("action", f"/ {action}") for action in transition.actions]
    return lines + _limit_lines(actions, ACTION_COLUMNS, ACTION_LINES, each=2)


def short_lines(transition: TransitionOutline, state: StateOutline) -> list[Line]:
    """Return the event alone, with a clock for a timer, a sign for a guard, and one for actions that are not
    written."""
    guard = guard_text(transition, state)
    signs = ["clock"] if transition.cause == "after" else []
    signs += ["else" if guard == ELSE else "condition"] if guard else []
    return [Line("event", _count_events(transition, state), " ".join(signs), more=bool(transition.actions))]


def _count_events(transition: TransitionOutline, state: StateOutline) -> str:
    """Return the events; of more than there is room for, the first and the number of the others: ``pay +3``."""
    text, rest = event_text(transition, state), len(transition.events) - 1
    if transition.cause == "after" or rest < 1 or columns(drawable(text)) <= EVENT_COLUMNS:
        return shorten(text, EVENT_COLUMNS)
    return f"{shorten(_event(transition.events[0], transition.source), EVENT_COLUMNS - len(f' +{rest}'))} +{rest}"


def transition_title(transition: TransitionOutline, state: StateOutline) -> str:
    targets = " and ".join(transition.targets)
    target = f"{state.name} → {targets}" if targets else f"{state.name}, not left"
    actions = [f"/ {action}" for action in transition.actions]
    return _title(
        [
            f"{transition.id}: {event_text(transition, state)}",
            target,
            transition.description,
            guard_text(transition, state),
            *actions,
        ]
    )


def group_title(source: str, targets: Sequence[str], found: Iterable[tuple[TransitionOutline, StateOutline]]) -> str:
    """List the transitions that one line stands for."""
    lines = [
        " ".join(
            filter(
                None,
                [f"{each.id}: {event_text(each, state)}", guard_text(each, state), *map("/ {}".format, each.actions)],
            )
        )
        for each, state in found
    ]
    where = f"{source} → {' and '.join(targets)}" if targets else f"{source}, not left"
    return _title([f"{len(lines)} transitions: {where}", *lines])


def guard_text(transition: TransitionOutline, state: StateOutline) -> str:
    """Write the guard, ``[else]`` where the same events are guarded by transitions before this one."""
    if transition.guard_text:
        return f"[{transition.guard_text}]"
    earlier = takewhile(lambda other: other.id != transition.id, state.transitions)
    guarded = any(other.guard_text and other.events == transition.events for other in earlier)
    return ELSE if guarded else ""


def event_text(transition: TransitionOutline, state: StateOutline) -> str:
    """Return the events as people call them: work that ends is ``done`` or ``error``, with its id where that says
    more."""
    if transition.cause == "after":
        return f"after {timer_text(transition, state)}"
    return ", ".join(_event(event, transition.source) for event in transition.events) or "always"


def timer_text(transition: TransitionOutline, state: StateOutline) -> str:
    """Return the delay of a timer; of several transitions that wait for the same one, the first has its text."""
    if transition.delay or transition.cause != "after":
        return transition.delay
    return next((other.delay for other in state.transitions if other.delay and other.events == transition.events), "")


def transition_kind(transition: TransitionOutline) -> str:
    """Return the further classes of an edge."""
    kinds = [] if transition.targets else ["internal"]
    if cause := CAUSES.get(transition.cause):
        kinds.append(cause)
    return " ".join(kinds)


def _event(event: str, source: str) -> str:
    for prefix, word in (("done.invoke.", "done"), ("done.state.", "done"), ("error.invoke.", "error")):
        if event.startswith(prefix):
            id = event.removeprefix(prefix)
            return word if id in (source, make_default_id(source, 0)) else f"{word} {id}"
    return event


def _work(invoke: InvokeOutline) -> str:
    if not invoke.machine:
        return f"do / {invoke.src}, by the queue {invoke.queue}"
    return f"do / {invoke.machine}, a child" + (" that is sent every event" if invoke.autoforward else "")


def _limit_lines(lines: list[Line], width: int, most: int, each: int = 1) -> list[Line]:
    """Return up to ``each`` lines for a text and ``most`` for all, and the number of those left out on the last one."""
    found: list[Line] = []
    for place, line in enumerate(lines):
        wrapped = wrap(line.text, width, each, indent="  ")
        left = len(lines) - place
        if len(found) + len(wrapped) + (1 if left > 1 else 0) > most:
            return [*found, Line(line.kind, f"+ {left} more")]
        found += [replace(line, text=text, mark="" if part else line.mark) for part, text in enumerate(wrapped)]
    return found


def _title(parts: list[str]) -> str:
    return "\n".join(drawable(part) for part in parts if part)


def drawable(text: str) -> str:
    """Return the text on one line, with what no XML document may hold replaced by U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(r"[\t\n\r]+", " ", UNDRAWABLE.sub("\ufffd", text))


def columns(text: str) -> int:
    """Return width in columns of a fixed-width font: East Asian characters and emoji take two."""
    return len(text) if text.isascii() else sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.category(character) in COMBINING:
        return 0
    return 2 if unicodedata.east_asian_width(character) in WIDE else 1


def bold_width(text: str, size: float) -> float:
    """Return width in pixels of bold text, whatever sans font a browser has."""
    if text.isascii():
        return size * sum(map(_ASCII_WIDTHS.__getitem__, text))
    return size * sum(
        WIDTHS.get(each, USUAL * (_width(each) or 0) if ord(each) < 0x370 else _width(each) * 1.0) for each in text
    )


def wrap(text: str, width: int, lines: int, indent: str = "") -> list[str]:
    """Wrap a text into at most ``lines`` lines of at most ``width`` columns, broken at spaces where there are any. What
    does not fit is cut and marked with an ellipsis. Lines after the first start with ``indent``.


    What does not fit is cut and marked with an ellipsis. Lines after the first start with ``indent``.
    """
    rest = drawable(text).strip()
    if rest and columns(rest) <= width:
        return [rest]
    found: list[str] = []
    while rest:
        room = width - (columns(indent) if found else 0)
        if len(found) == lines - 1:
            found.append(shorten(rest, room))
            break
        line, rest = _break(rest, room)
        found.append(line)
    return [found[0], *(indent + line for line in found[1:])] if found else []


def shorten(text: str, width: int) -> str:
    """Return the text, or as much of it as fits with an ellipsis behind it."""
    text = drawable(text)
    if columns(text) <= width:
        return text
    return text[: _count_fitting(text, width - 1)].rstrip() + ELLIPSIS


def _break(text: str, width: int) -> tuple[str, str]:
    """Return the first line and what is left. A word longer than a line is cut; one that leaves a poor line is, too."""
    if columns(text) <= width:
        return text, ""
    end = _count_fitting(text, width)
    space = text.rfind(" ", 0, end + 1)
    if space > end // 3:
        end = space
    return text[:end].rstrip(), text[end:].lstrip()


def _count_fitting(text: str, width: int) -> int:
    """Return how many characters fit into ``width`` columns; at least one, so that wrapping always ends."""
    used = 0
    for place, character in enumerate(text):
        used += _width(character)
        if used > width:
            return max(place, 1)
    return len(text)


def state_size(name: Sequence[str], details: Sequence[Line], *, grip: bool = False) -> tuple[float, float]:
    """Return width and height of a state's box: lamp, name, count, and the grip of a folded one on top, details
    below."""
    top = LAMP_ROOM + _measure_widest(name) + COUNT_ROOM + (GRIP_ROOM if grip else 0)
    width = max(STATE_LEAST, top + 2 * PAD, _detail_width(details) + 2 * PAD)
    height = 2 * PAD + max(1, len(name)) * NAME_LINE - 2
    return round(width), round(height + (len(details) * SMALL_LINE + 4 if details else 0))


def heading_size(name: Sequence[str], details: Sequence[Line]) -> tuple[float, float]:
    """Return the size of the heading of a state that is drawn around others."""
    top = LAMP_ROOM + _measure_widest(name) + COUNT_ROOM + GRIP_ROOM
    width = max(top, _detail_width(details)) + 2 * PAD
    height = 2 * HEADING_PAD + len(name) * NAME_LINE + (len(details) * SMALL_LINE + 3 if details else 0)
    return round(width), round(height)


def queue_size(name: str) -> tuple[float, float]:
    return round(2 * PAD + QUEUE_END + columns(name) * SMALL_COLUMN * 1.1 + COUNT_ROOM - 14), QUEUE_HEIGHT


def label_columns(lines: Sequence[Line]) -> int:
    """Return width of an edge's label in columns of the small font; the event's line keeps room for the flow number."""
    widths = [line.columns for line in lines if line.kind != "event"]
    events = [event_width(line) + FLOW_ROOM for line in lines if line.kind == "event"]
    return max([*widths, *(int(-(-width // SMALL_COLUMN)) for width in events)], default=0)


def marks_width(line: Line) -> float:
    """Return the width of the signs in front of a line."""
    return MARK_ROOM * len(line.mark.split())


def event_width(line: Line) -> float:
    """Return the width of an event's name with the signs before and behind it, and without its flow number."""
    return marks_width(line) + bold_width(line.text, EVENT) + (MORE_ROOM if line.more else 0)


def label_size(lines: Sequence[Line]) -> tuple[float, float]:
    return label_columns(lines) * SMALL_COLUMN, len(lines) * SMALL_LINE


def _measure_widest(lines: Sequence[str]) -> float:
    return max((bold_width(line, NAME) for line in lines), default=0.0)


def _detail_width(details: Sequence[Line]) -> float:
    return max((line.columns * SMALL_COLUMN + marks_width(line) for line in details), default=0)
