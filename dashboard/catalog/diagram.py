"""Draws a machine's diagram with the figures of a mode, marks for what is wrong, and links to the lists behind them;
counts the instances in error by state."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from dashboard.shared import version_view
from dashboard.shared.addresses import find_page_address
from dashboard.shared.diagram_modes import DEFAULT, MODES, Mode, format_count
from dashboard.shared.redacted_engine import RedactedEngine
from dashboard.shared.version_view import Overlay, VersionView, link_folds
from machines.diagrams import GROUP, state_id
from machines.engine import Instance, Live, Problem
from machines.engine.definitions import Outline, StateOutline, TransitionOutline, durations

from .diagram_figures import NO_READINGS, ModeFigures, ModeReadings, read_figures


def draw_machine(
    view: VersionView,
    live: Live,
    chosen: str | None,
    mode: Mode = DEFAULT,
    readings: ModeReadings = NO_READINGS,
    *,
    bare: bool = False,
    search: Mapping[str, str] | None = None,
) -> SafeString:
    """Draw the figures of a mode on states, lines and queues.

    A state links to the list filtered by it, a group to the drawing with it folded or not; a line links to the
    instances in its target that came by it, the latest first; where the machine does not index transitions, to all in
    its target. A state with substates has their sum. A line has the flow of all transitions it stands for. Marks are
    shown in every mode. ``bare``: no links, for a file; ``search``: other terms of the list, which the links keep.
    """
    reading = read_figures(mode, view, live, readings)
    overlay, groups = Overlay(), _list_groups(view)

    def make_address(terms: Mapping[str, str]) -> str:
        return _make_address(view, mode, state=chosen, **(version_view.NO_VIEW | dict(terms)))

    counts = view.drawn.sum_counts(live.counts)
    for state, part in _list_visible_states(view):
        overlay.counts[part] = reading.states.get(state, "") + ("+" if readings.partial and mode is DEFAULT else "")
        kept = dict(search or {})
        if state in groups:
            overlay.links[part] = f"{make_address(view.toggle_fold(state))}#{part}"
        else:
            overlay.links[part] = (
                _filter(view, mode, **kept) if state == chosen else _make_state_url(view, mode, state, kept)
            )
        overlay.names[part] = _link_label(state, counts[state], mode, reading)
        if counts[state]:
            overlay.mark(part, "occupied")
        if heat := reading.heat.get(state):
            overlay.mark(part, f"heat-{heat}")
    if chosen in view.index["states"]:
        overlay.mark(view.index["states"][chosen], "chosen")
    _draw_lines(view, overlay, mode, reading)
    _draw_queues(view, overlay, live.queues, reading)
    _draw_marks(view, overlay, mode, reading)
    link_folds(view, overlay, make_address)
    if bare:
        overlay.links = {}
    return overlay.draw_on(view.svg)


def _draw_lines(view: VersionView, overlay: Overlay, mode: Mode, reading: ModeFigures) -> None:
    """Write the figures of lines. Link each to the instances that came by it, where it is one transition and the
    machine keeps them, else to those in its target."""
    overlay.flows = dict(reading.flow_texts)
    for part, heat in reading.flow_heat.items():
        if heat:
            overlay.mark(part, f"heat-{heat}")
    parts = [(view.index["transitions"].get(each[1].id), each) for each in _list_transitions(view)]
    shared = Counter(part for part, _ in parts)
    for part, (state, transition) in parts:
        target = transition.targets[0] if transition.targets else transition.target or state.name
        if part is not None and target in view.index["sums"]:
            enters = bool(transition.targets or transition.target) and shared[part] == 1
            edge = f"{view.version}:{transition.id}" if enters and view.keeps_transitions else None
            overlay.links.setdefault(part, _filter(view, mode, state=target, edge=edge, order="newest"))


def _link_label(state: str, count: int, mode: Mode, reading: ModeFigures) -> str:
    text = reading.states.get(state) if mode.name not in ("count", "flow") else ""
    return f"{state}: {format_count(count)}" + (f", {mode.label.lower()} {text}" if text else "")


def _make_state_url(view: VersionView, mode: Mode, state: str, kept: Mapping[str, str]) -> str:
    """Return the address of the instances that a state's figure counts."""
    wanted = {"error": "any"} if mode is MODES["failures"] else kept
    return _filter(view, mode, **{**wanted, "state": state})


def _list_groups(view: VersionView) -> set[str]:
    """List the groups that are drawn: no list is filtered by one."""
    return {state.name for state in view.drawn.states if state.type == GROUP}


def _draw_marks(view: VersionView, overlay: Overlay, mode: Mode, reading: ModeFigures) -> None:
    """Link each mark to the instances it counts, or to the drawing that unfolds them."""
    for id, (state, of) in view.index["marks"].items():
        overlay.links[id] = _mark_url(view, mode, id.partition("-")[0], state, of == [state])
    for id, mark in reading.marks.items():
        overlay.counts[id], overlay.names[id] = mark.text, mark.said
        overlay.mark(id, "shown")


def _mark_url(view: VersionView, mode: Mode, kind: str, state: str, own: bool) -> str:
    if not own:
        return _make_address(view, mode, **(version_view.NO_VIEW | view.toggle_fold(state)))
    wanted = (
        {"error": "any"} if kind == "failing" else {"older": durations.format_duration(view.outline.state(state).sla)}
    )
    return _filter(view, mode, state=state, **wanted)


def _list_transitions(view: VersionView) -> Iterator[tuple[StateOutline, TransitionOutline]]:
    return ((state, transition) for state in view.outline.states for transition in state.transitions)


def _list_visible_states(view: VersionView) -> Iterator[tuple[str, str]]:
    """Yield the states that have a part of their own in the diagram; folded ones do not."""
    for state in view.drawn.states:
        if view.index["states"].get(state.name) == state_id(state.index):
            yield state.name, state_id(state.index)


def _draw_queues(
    view: VersionView, overlay: Overlay, queues: Mapping[str, Mapping[str, int]], reading: ModeFigures
) -> None:
    for queue, part in view.index["queues"].items():
        held = queues.get(queue, {})
        overlay.counts[part] = reading.queues[queue]
        overlay.links[part] = find_page_address("signalbox:queue", view.machine, queue)
        if heat := reading.queue_heat.get(queue):
            overlay.mark(part, f"heat-{heat}")
        if held.get("ready"):
            overlay.mark(part, "occupied")
        if held.get("dead"):
            overlay.mark(part, "dead")


def _filter(view: VersionView, mode: Mode, /, **wanted: str | None) -> str:
    return f"{_make_address(view, mode, **wanted)}#instances"


def _make_address(view: VersionView, mode: Mode, /, **wanted: str | None) -> str:
    given = version_view.NO_VIEW | view.terms | {"mode": None if mode is DEFAULT else mode.name}
    given |= {"version": str(view.version) if view.chosen else None} | wanted
    query = urlencode({name: term for name, term in given.items() if term})
    return f"{find_page_address('signalbox:machine', view.machine)}{f'?{query}' if query else ''}"


MOST = 1000  # instances in error whose region is looked for; of more, every region counts


def count_errors(engine: RedactedEngine, view: VersionView, version: int | None = None) -> dict[str, int]:
    """Count the instances in error by state, leaf or not. ``version``: of this one alone.

    An instance of a machine with a parallel state is in several leaves. It counts in those of the region whose state
    invoked the dead job, or armed the timer that failed; where that is unknown, in all.
    """
    outline = view.outline
    leaves = {leaf: n for leaf, n in engine.tally(view.machine, error="any", version=version).counts.items() if n}
    if leaves and any(state.type == "parallel" for state in outline.states):
        found = engine.find(view.machine, error="any", version=version, limit=MOST)
        if found.cursor is None:
            return _count_by_region(engine, outline, list(found))
    return {state: count for state, count in (outline.sum_counts(leaves) | leaves).items() if count}


def _count_by_region(engine: RedactedEngine, outline: Outline, found: list[Instance]) -> dict[str, int]:
    machine = found[0].machine if found else ""
    problems = engine.problems(machine, [one.id for one in found]) if found else {}
    invokes = _read_invokes(engine, machine, outline, problems)
    counts: Counter[str] = Counter()
    for one in found:
        sources = [_find_source(outline, one, problem, invokes) for problem in problems.get(one.id, ())]
        failing = {leaf for source in sources for leaf in _list_below(outline, one.configuration, source)}
        hit = failing or one.configuration
        counts.update({above.name for leaf in hit for above in outline.lineage(leaf)} | set(hit))
    return dict(counts)


def _read_invokes(
    engine: RedactedEngine, machine: str, outline: Outline, problems: Mapping[str, Iterable[Problem]]
) -> dict[str, str]:
    """Return dead job -> the id of its invoke, of the newest dead jobs of each queue."""
    if not problems:
        return {}
    queues = {*outline.queues, *(name for name, held in engine.live(machine).queues.items() if held.get("dead"))}
    listed = [job for queue in sorted(queues) for job in engine.jobs(machine, queue, place="dead", limit=MOST)]
    return {job.id: job.invoke for job in listed}


def _find_source(outline: Outline, one: Instance, problem: Problem, invokes: Mapping[str, str]) -> str:
    """Return the state that the problem belongs to; "" if it is unknown."""
    if invoke := invokes.get(problem.cause):
        return next((state.name for state in outline.states if any(i.id == invoke for i in state.invokes)), "")
    number = "".join(part for part in problem.cause.partition(":")[0] if part.isdigit())
    return next((timer.state for timer in one.timers if timer.id.replace(".", "") == number), "")


def _list_below(outline: Outline, configuration: Collection[str], source: str) -> list[str]:
    """List the active leaves in a state; all if it is unknown, or not active any more."""
    below = [leaf for leaf in configuration if source in (above.name for above in outline.lineage(leaf))]
    return below or list(configuration)
