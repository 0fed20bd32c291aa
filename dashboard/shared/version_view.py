"""Loads one version of a machine for the pages: its outline, its diagram with what a page writes on it, its events as
forms."""

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from machines import diagrams
from machines.catalog import builtin_machines, offload
from machines.catalog.queries import get_version, list_unrecorded, make_version, outline_from
from machines.diagrams import active, fold_id
from machines.engine import Instance
from machines.engine.definitions import FieldOutline, Outline, StateOutline, TransitionOutline
from machines.engine.definitions.outline import is_match
from machines.engine.definitions.reading.machine_settings import TRANSITION
from machines.instances.forms import TypedForm
from machines.models import Machine, MachineVersion
from machines.people.mirrors import is_mirror, row_methods

from .times import TimeFields

VAST_WIDTH = 1300  # pixels
MAX_WITHOUT_MAP = 24  # states
MAX_CACHED = 128  # machines whose index and folds are kept: a published version never changes
MAX_CACHED_DRAWINGS = 32  # folded diagrams in the cache of a process
DRAWING_CPU = 5.0  # seconds of processor time that one may take
NO_VIEW = {"view": None, "fold": None}  # the terms of an address that say how a machine is drawn
TOP = "*"  # every state of the top level is folded
GROUPS = "groups:"  # before the folds of a drawing with groups of states
NONE = "-"  # the folds of an address where no group is folded


@dataclass(frozen=True, slots=True)
class DataField:
    """Holds a declared data field with its value. ``present`` is False if it is not set."""

    name: str
    description: str
    present: bool
    value: Any = None


@dataclass(frozen=True, slots=True)
class ActiveState:
    """Holds an active leaf state. ``around``: its ancestors, from the outside in."""

    name: str
    around: tuple[str, ...] = ()
    region: str = ""

    @property
    def path(self) -> str:
        return " › ".join([*self.around, self.name])


@dataclass(frozen=True, slots=True)
class VersionView:
    """Holds a version. ``index`` maps states, transitions and queues to the ids of their parts in ``svg``.

    ``folds``: the states that are folded in the diagram; ``foldable``: all that could be, ``top`` those of the top
    level. ``groups``: the outline with its states in groups, where that is offered, ``is_grouped`` where it is drawn.
    ``chosen``: the address names the version; otherwise it is the current one, with the instances of all.
    """

    machine: str
    version: int
    outline: Outline
    svg: str
    index: dict[str, dict[str, Any]]
    fingerprint: str
    folds: frozenset[str] = frozenset()
    foldable: tuple[str, ...] = ()
    top: frozenset[str] = frozenset()
    chosen: bool = False
    groups: Outline | None = None
    is_grouped: bool = False

    @property
    def drawn(self) -> Outline:
        """Return the outline that is drawn: with its states in groups, or as it is."""
        return self.groups if self.groups and self.is_grouped else self.outline

    @property
    def is_mirror(self) -> bool:
        """Return whether the instances follow rows of a table."""
        return is_mirror(self.machine)

    @property
    def is_system(self) -> bool:
        """Return whether the machine is the product's, whose own pages change its instances."""
        return self.machine in builtin_machines.NAMES

    @property
    def terms(self) -> dict[str, str]:
        """Return the terms of an address that ask for this diagram."""
        return self.terms_of(self.folds)

    def terms_of(self, folds: Collection[str]) -> dict[str, str]:
        """Return ``?view=top`` if it fits, else ``?fold=`` with names in the order of the definition; of groups,
        ``?view=groups``."""
        kept = diagrams.effective(self.drawn, folds)
        names = ",".join(_fold_name(state) for state in self.drawn.states if state.name in kept)
        if self.is_grouped:
            return {"view": "groups"} | ({} if kept == self.top else {"fold": names or NONE})
        if kept and kept == self.top:
            return {"view": "top"}
        return {"fold": names} if names else {}

    @property
    def query(self) -> str:
        """Return the query of the address of this diagram by itself."""
        return urlencode({"version": self.version} | self.terms)

    @property
    def views(self) -> list[tuple[str, dict[str, str]]]:
        """List the other diagrams of the version: a label, and the terms."""
        whole: list[tuple[str, dict[str, str]]] = [("All states", {})] if self.folds or self.is_grouped else []
        if self.groups:
            return whole + ([] if self.is_grouped and self.folds == self.top else [("Groups", {"view": "groups"})])
        return whole + ([("Top level", self.terms_of(self.top))] if self.top and self.folds != self.top else [])

    def toggle_fold(self, state: str) -> dict[str, str]:
        """Return the terms for the same diagram with this state unfolded, or folded."""
        return self.terms_of(self.folds ^ {state})

    @property
    def keeps_transitions(self) -> bool:
        """Return whether each instance is indexed by the transition that it came by."""
        return TRANSITION in self.outline.index

    @property
    def is_vast(self) -> bool:
        """Return whether the diagram is too wide to be read when it is scaled to fit a page."""
        width = re.search(r'<svg [^>]*\bwidth="(\d+)', self.svg)
        return width is not None and int(width[1]) > VAST_WIDTH

    @property
    def is_large(self) -> bool:
        """Return whether the diagram needs a map, a field that jumps to a state, and focus."""
        return len(self.outline.states) > MAX_WITHOUT_MAP

    @property
    def stamps(self) -> TimeFields:
        return TimeFields(self.outline.data)

    def fields(self, data: Mapping[str, Any]) -> list[DataField]:
        return [
            DataField(field.name, field.description, field.name in data, data.get(field.name))
            for field in self.outline.data
        ]

    def event_names(self, configuration: Iterable[str]) -> list[str]:
        """List events that the current states accept, in the order of the definition, then every other known event.

        A state that accepts a pattern (``*``, ``door.*``) takes events that cannot be listed: they are "" here.
        """
        here = self._list_accepted_fields(list(configuration))
        known = [*self.outline.events, *self._list_accepted_fields([state.name for state in self.outline.states])]
        return list(dict.fromkeys([*here, *(name for name in known if name)]))

    def event_description(self, name: str) -> str:
        event = self.outline.events.get(name)
        return event.description if event else ""

    def list_accepted_events(self, configuration: Iterable[str]) -> frozenset[str]:
        """Return the events that the active states accept."""
        return frozenset(self._list_accepted_fields(list(configuration)))

    def transitions_on(self, event: str, configuration: Iterable[str]) -> Iterator[TransitionOutline]:
        """Yield the transitions of the active states and their ancestors that an event of this name can take."""
        active = {above.name: above for state in configuration for above in self.outline.lineage(state)}
        for state in active.values():
            for transition in state.transitions:
                if transition.cause == "on" and any(is_match(one, event) for one in transition.events):
                    yield transition

    @property
    def is_nested(self) -> bool:
        return any(state.parent for state in self.outline.states)

    def transition(self, id: str) -> TransitionOutline | None:
        return next((t for state in self.outline.states for t in state.transitions if t.id == id), None)

    def places(self, configuration: Iterable[str]) -> list[ActiveState]:
        """List the active states; a state of another version has no ancestors."""
        return [self._place(name) for name in configuration]

    def _place(self, name: str) -> ActiveState:
        lineage = [state for state in self.outline.lineage(name)[1:] if state.name != self.outline.root]
        parallel = {state.name for state in self.outline.states if state.type == "parallel"}
        region = next((state.name for state in self.outline.lineage(name) if state.parent in parallel), "")
        return ActiveState(name, tuple(state.name for state in reversed(lineage)), "" if region == name else region)

    def delay_of(self, event: str) -> str:
        """Return the delay of a state's own timer event; empty for any other event."""
        found = (t.delay for state in self.outline.states for t in state.transitions if event in t.events)
        return next((delay for delay in found if delay), "")

    def payload_form(
        self,
        event: str,
        configuration: Iterable[str] | None,
        *,
        id_prefix: str,
        data: Mapping[str, Any] | None = None,
        earlier: Mapping[str, Any] | None = None,
    ) -> TypedForm:
        """Return the form for an event's payload: declared fields, or those its guards and actions read.

        ``configuration`` None asks for the fields of every state: what a posted form may hold in whatever state the
        instance is. ``earlier``: a payload that the event had before.
        """
        if (called := row_methods().list_parameters(self.machine, event) if self.is_mirror else None) is not None:
            return TypedForm(called[0], is_open=called[1], id_prefix=id_prefix, data=data)
        declared = self.outline.events.get(event)
        if declared is not None and declared.fields is not None:
            return TypedForm(declared.fields, id_prefix=id_prefix, data=data, earlier=earlier)
        states = [state.name for state in self.outline.states] if configuration is None else configuration
        inferred = self._list_accepted_fields(list(states)).get(event, ())
        return TypedForm(inferred, is_open=True, id_prefix=id_prefix, data=data, earlier=earlier)

    def _list_accepted_fields(self, states: list[str]) -> dict[str, Sequence[FieldOutline]]:
        """Return event -> fields, for these states and their ancestors; nothing for a state of another version."""
        active = {above.name: above for state in states for above in self.outline.lineage(state)}
        listened = {event.name: event.fields or () for event in self.outline.events_of(states)}
        heard = (t for state in active.values() for t in state.transitions if t.cause == "on")
        return listened | ({"": ()} if any(_is_open(event) for t in heard for event in t.events) else {})


def _is_open(descriptor: str) -> bool:
    """Return whether an event descriptor is a pattern for external events."""
    return descriptor.endswith("*") and not descriptor.startswith(("done.", "error."))


def read_folds(query: Mapping[str, str]) -> str:
    """Read the folds of an address for ``load_version``: ``?view=top``, ``?fold=a,b`` or ``?view=groups``."""
    if query.get("view") == "groups":
        return GROUPS + query.get("fold", TOP)
    return TOP if query.get("view") == "top" else query.get("fold", "")


def load_version(machine: str, version: int, *, fold: str = "", who: str = "", full: bool = False) -> VersionView:
    """Load a version. One that a script published straight into Redis is stored first.

    Raise UnknownMachine, OffloadError. ``fold`` names states as ``read_folds`` returns them; states that cannot be
    folded are ignored. ``who`` identifies the caller. ``full``: the diagram has guards and actions in words.
    """
    found = get_version(machine, version)
    text = json.dumps(found.definition)
    whole, fingerprint = outline_from(text), f"{found.digest}-{diagrams.DRAWING}"
    groups = _group(text)
    grouped = groups is not None and fold.startswith(GROUPS)
    drawn = groups if groups and grouped else whole
    foldable, top = _read_foldable(text, grouped)
    folds = _parse_folds(drawn, foldable, top, fold.removeprefix(GROUPS) if grouped else fold) if fold else frozenset()
    svg, index = found.svg, _make_index(text)
    if folds or full or grouped:
        svg, index = _draw_version(text, folds, who, full, grouped)
        named = hashlib.sha256("\n".join([str((full, grouped)), *sorted(folds)]).encode()).hexdigest()[:16]
        fingerprint = f"{fingerprint}-{named}"
    return VersionView(
        machine, version, whole, svg, index, fingerprint, folds, foldable, top, groups=groups, is_grouped=grouped
    )


def load_versions(wanted: Mapping[str, int]) -> dict[str, VersionView]:
    """Load a version of each machine for pages without diagrams: ``svg`` is empty.

    One query for those that are stored, one for the others. Raise UnknownMachine.
    """
    rows = MachineVersion.objects.filter(machine__name__in=wanted, number__in=set(wanted.values()))
    found: dict[str, VersionView] = {}
    for machine, number, definition, digest in rows.values_list("machine__name", "number", "definition", "digest"):
        if wanted[machine] == number:
            found[machine] = _view_undrawn(machine, number, definition, digest)
    missing = {machine: version for machine, version in wanted.items() if machine not in found}
    found |= {machine: _view_row(row) for machine, row in list_unrecorded(missing).items()}
    return {machine: found[machine] for machine in wanted}


def load_versions_of(machine: str, numbers: Collection[int]) -> dict[int, VersionView]:
    """Load several versions of one machine without their diagrams, in one query. Raise UnknownMachine."""
    rows = MachineVersion.objects.filter(machine__name=machine, number__in=numbers)
    facts = rows.values_list("number", "definition", "digest")
    found = {number: _view_undrawn(machine, number, definition, digest) for number, definition, digest in facts}
    return {number: found.get(number) or _view_row(make_version(machine, number)) for number in numbers}


def _view_row(row: MachineVersion) -> VersionView:
    return _view_undrawn(row.machine.name, row.number, row.definition, row.digest)


def _view_undrawn(machine: str, number: int, definition: dict[str, Any], digest: str) -> VersionView:
    text = json.dumps(definition)
    return VersionView(machine, number, outline_from(text), "", _make_index(text), f"{digest}-{diagrams.DRAWING}")


def find_lost_machines(known: Collection[str]) -> list[str]:
    """List machines in SQL that are missing in Redis; ``known``: the names of those in Redis."""
    return [name for name in Machine.objects.order_by("name").values_list("name", flat=True) if name not in known]


@lru_cache(maxsize=MAX_CACHED)
def _make_index(text: str) -> dict[str, dict[str, Any]]:
    return diagrams.index(outline_from(text))


@lru_cache(maxsize=MAX_CACHED)
def _group(text: str) -> Outline | None:
    return diagrams.group_by_prefix(outline_from(text))


@lru_cache(maxsize=MAX_CACHED)
def _read_foldable(text: str, grouped: bool) -> tuple[tuple[str, ...], frozenset[str]]:
    whole = (_group(text) if grouped else None) or outline_from(text)
    return diagrams.foldable(whole), diagrams.top_level(whole)


def _parse_folds(whole: Outline, foldable: tuple[str, ...], top: frozenset[str], fold: str) -> frozenset[str]:
    """Parse the folds of an address. It reads no more words than there are states to fold."""
    if fold == TOP:
        return top
    words = set(fold.split(",", len(foldable))[: len(foldable)])
    return diagrams.effective(whole, [s.name for s in whole.states if s.name in foldable and _fold_name(s) in words])


def _fold_name(state: StateOutline) -> str:
    """Return the name of a state in an address: its number if the name has a comma."""
    return str(state.index) if "," in state.name else state.name


def _draw_version(
    text: str, folds: frozenset[str], who: str, full: bool, grouped: bool
) -> tuple[str, dict[str, dict[str, Any]]]:
    """Draw a folded diagram, or one with full labels, once per process, in a helper process in limited time."""
    kept = _make_entry(text, diagrams.DRAWING, folds, full, grouped)
    if not kept:
        wanted = {"folds": sorted(folds), "full": full, "grouped": grouped}
        done = offload.run("draw", text, who=who, cpu=DRAWING_CPU, **wanted)
        drawn = (_group(text) if grouped else None) or outline_from(text)
        kept.append((done.answer, diagrams.index(drawn, folds=folds, merged=not full)))
    return kept[0]


@lru_cache(maxsize=MAX_CACHED_DRAWINGS)
def _make_entry(
    text: str, way: int, folds: frozenset[str], full: bool, grouped: bool
) -> list[tuple[str, dict[str, dict[str, Any]]]]:
    """Return the cache entry of a diagram, empty at first. ``way``: the version of the drawing code."""
    return []


TAG = re.compile(
    r'<g id="(?P<part>[^"]*)" class="(?P<classes>[^"]*)"'
    r'|<(?P<tag>text|tspan) (?P<attributes>[^<>]*\bclass="(?P<slot>count|flow|told)"[^<>]*?) ?(?:/>|></(?:text|tspan)>)'
    r"|(?P<group><g\b)|</g>"
)


Address = Callable[[Mapping[str, str]], str]
"""Takes the terms of another drawing and returns the address of the same page with it."""


@dataclass(slots=True)
class Overlay:
    """Holds texts, classes and links for the parts of a drawing, by their ids."""

    counts: dict[str, str] = field(default_factory=dict)
    flows: dict[str, str] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def mark(self, part: str, name: str) -> None:
        self.classes.setdefault(part, []).append(name)

    def highlight(self, view: VersionView, configuration: Iterable[str], transitions: Iterable[str]) -> None:
        """Mark the states that are active when these leaves are as current, and the transitions as taken."""
        for part in find_state_parts(view, configuration):
            self.mark(part, "current")
        for part in find_transition_parts(view, transitions):
            self.mark(part, "taken")

    def draw_on(self, svg: str) -> SafeString:
        return mark_safe(_OverlayWriter(self).write(svg))  # noqa: S308  the drawing is trusted; inserted text is escaped


class _OverlayWriter:
    """Writes an overlay into a drawing in one pass over its tags, and remembers which part it is inside of."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._part = ""
        self._depth = 0
        self._link = 0  # depth of the open link

    def write(self, svg: str) -> str:
        return TAG.sub(self._tag, svg)

    def _tag(self, match: re.Match[str]) -> str:
        if match["part"] is not None:
            return self._open(match["part"], match["classes"])
        if match["slot"] is not None:
            texts = self._overlay.counts if match["slot"] != "flow" else self._overlay.flows
            text = escape(texts.get(self._part, ""))
            return f"<{match['tag']} {match['attributes']}>{text}</{match['tag']}>"
        if match["group"] is not None:
            self._depth += 1
            return match["group"]
        self._depth -= 1
        if self._depth + 1 != self._link:
            return "</g>"
        self._link = 0
        return "</a>"

    def _open(self, part: str, classes: str) -> str:
        self._part, self._depth = part, self._depth + 1
        classes = " ".join([classes, *self._overlay.classes.get(part, ())])
        link = self._overlay.links.get(part)
        if link is None:
            return f'<g id="{part}" class="{classes}"'
        self._link = self._depth
        name = self._overlay.names.get(part)
        label = f' aria-label="{escape(name)}"' if name else ""
        return f'<a href="{escape(link)}" id="{part}" class="{classes}"{label}'


def link_folds(view: VersionView, overlay: Overlay, address: Address) -> None:
    """Add the links that fold and unfold states."""
    for state in view.drawn.states:
        if state.name in view.foldable:
            part = fold_id(state.index)
            overlay.links[part] = f"{address(view.toggle_fold(state.name))}#{part}"


def find_state_parts(view: VersionView, configuration: Iterable[str]) -> list[str]:
    """Return the ids of the parts for the states that are active when these leaves are."""
    states = view.index["states"]
    return list(dict.fromkeys(states[name] for name in active(view.drawn, configuration) if name in states))


def find_transition_parts(view: VersionView, transitions: Iterable[str]) -> list[str]:
    """Return the ids of the lines for these transitions."""
    drawn = view.index["transitions"]
    return list(dict.fromkeys(drawn[id] for id in transitions if id in drawn))


def draw_instance(
    view: VersionView,
    instance: Instance,
    possible: Mapping[str, str],
    *,
    actions: Mapping[str, str] | None = None,
    address: Address | None = None,
) -> SafeString:
    """Highlight every active state, in each region and around it, and the transitions that are available now.

    ``possible``: transition -> kind of its route; ``actions``: transition -> the anchor of its
    form; a line of several forms leads to none. ``address``: returns the address of this page with another drawing.
    """
    overlay = Overlay()
    if address:
        link_folds(view, overlay, address)
    overlay.highlight(view, instance.configuration, instance.outcome.transitions if instance.outcome else ())
    for part in find_transition_parts(view, (id for id, kind in possible.items() if kind in ("holds", "depends"))):
        overlay.mark(part, "possible")
    forms: dict[str, set[str]] = {}
    for id, anchor in (actions or {}).items():
        if possible.get(id) in ("holds", "depends") and id in view.index["transitions"]:
            forms.setdefault(view.index["transitions"][id], set()).add(anchor)
    overlay.links |= {part: f"#{anchors.pop()}" for part, anchors in forms.items() if len(anchors) == 1}
    return overlay.draw_on(view.svg)
