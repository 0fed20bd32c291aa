"""Searches and answers of insight. Times are milliseconds, shares numbers from 0 to 1.

A state is a configuration as one line of text: of a machine with parallel regions, all active leaves together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from machines.engine.limits import FIELD_NAME
from machines.engine.records import PlainRecord

from .errors import BadSearch

MOST_VERSION = 2**31 - 1
GAP = "…"
"""Stands in a path for steps that were trimmed from the history before they were read."""


@dataclass(frozen=True, slots=True)
class Search:
    """Which instances a question is about. All that is given must hold; the default is all instances of the machine.

    ``versions``: of the definition, as the instance has it now. ``begin``, ``end``: created from ``begin`` on and
    before ``end``. ``where``: indexed data fields with the value that they have now, as text. ``tag``: in a state with
    this tag now, or at the end. ``state``: in this state now, or at the end. ``actor``: took part in a step.
    """

    machine: str
    versions: tuple[int, ...] = ()
    begin: int | None = None
    end: int | None = None
    where: tuple[tuple[str, str], ...] = ()
    tag: str = ""
    actor: str = ""
    state: str = ""

    def __post_init__(self) -> None:
        if self.begin is not None and self.end is not None and self.end <= self.begin:
            raise BadSearch("the time ends before it begins")
        if not all(0 <= version <= MOST_VERSION for version in self.versions):
            raise BadSearch("there is no such version")
        for name, _ in self.where:
            if not FIELD_NAME.fullmatch(name):
                raise BadSearch(f"{name!r} is no name of a data field")


@dataclass(frozen=True, slots=True)
class Extent:
    """What a question looked at. ``lost``: steps of these instances that were trimmed before they were read.
    ``read_up_to``: the facts have every step up to this time; 0 before the first pass. ``has_regions``: some states are
    several leaves at once, so that a path is a way of whole configurations. ``left_out``: rows that the
    answer has no place for, the rarest ones."""

    instances: int = 0
    steps: int = 0
    lost: int = 0
    read_up_to: int = 0
    has_regions: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Spread:
    """Exact quantiles of durations in ms; ``total`` is their sum. All 0 where ``count`` is."""

    count: int = 0
    p50: int = 0
    p95: int = 0
    p99: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class StateFigure:
    """``instances``: how many were in it; ``share``: of all; ``entries``: how often it was entered; ``here``: how many
    are in it now; ``stay``: the stays that have ended."""

    state: str
    instances: int
    share: float
    entries: int
    here: int
    stay: Spread


@dataclass(frozen=True, slots=True)
class TransitionFigure:
    """Steps from one state to another by an event. ``share``: of all steps out of the source. ``keys``:
    ``<version>:<transition>`` as in ``Live.flow``, several where a step takes several. ``wait``: time in the source
    before the step."""

    source: str
    target: str
    event: str
    keys: tuple[str, ...]
    count: int
    share: float
    wait: Spread


@dataclass(frozen=True, slots=True)
class Path:
    """States in the order in which they were entered. A return to an earlier state takes what lies between out of the
    path and counts as one of ``loops``; ``looped``: how many instances have any. ``duration``: from the first step to
    the last one, of those that have ended."""

    states: tuple[str, ...]
    count: int
    share: float
    looped: int
    loops: int
    ended: int
    duration: Spread


@dataclass(frozen=True, slots=True)
class Paths(PlainRecord):
    """``rest``: the instances of the rarer paths, and ``rest_paths`` how many these are; ``leaves``: of a machine with
    regions each state by itself, without times beside others."""

    extent: Extent
    states: tuple[StateFigure, ...] = ()
    transitions: tuple[TransitionFigure, ...] = ()
    paths: tuple[Path, ...] = ()
    rest: int = 0
    rest_paths: int = 0
    leaves: tuple[StateFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class FunnelStage:
    """``instances`` reached the state after those before it; ``share``: of the first stage; ``of_previous``: of the
    stage before; ``wait``: time since the stage before."""

    state: str
    instances: int
    share: float
    of_previous: float
    wait: Spread


@dataclass(frozen=True, slots=True)
class Funnel(PlainRecord):
    extent: Extent
    within: int | None
    stages: tuple[FunnelStage, ...] = ()


@dataclass(frozen=True, slots=True)
class Bucket:
    """Durations from ``low`` on and below ``high`` ms."""

    low: int
    high: int
    count: int


@dataclass(frozen=True, slots=True)
class Duration:
    state: str
    stay: Spread
    buckets: tuple[Bucket, ...]


@dataclass(frozen=True, slots=True)
class Durations(PlainRecord):
    """The stays that have ended, by state, the longest in all first."""

    extent: Extent
    states: tuple[Duration, ...] = ()


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """``total``: ms of all stays together, also those that last; ``share``: of the time in all states."""

    state: str
    total: int
    share: float
    waiting: int
    stay: Spread


@dataclass(frozen=True, slots=True)
class Bottlenecks(PlainRecord):
    """States by the time that instances were in them, the most first."""

    extent: Extent
    states: tuple[Bottleneck, ...] = ()


@dataclass(frozen=True, slots=True)
class PersonFigure:
    """Steps of one actor, queue, handler, worker, attempt or kind; an empty name where a job's is unknown. ``failed``:
    steps by which a job failed. ``wait``: time in the source before the step. Of jobs whose times are known ``queued``:
    time until a worker first took it, and ``running``: of the last attempt; ``retried``: from the first attempt to the
    last one, of those that had several."""

    name: str
    steps: int
    instances: int
    failed: int
    wait: Spread
    queued: Spread = Spread()
    running: Spread = Spread()
    retried: Spread = Spread()


@dataclass(frozen=True, slots=True)
class People(PlainRecord):
    extent: Extent
    by: str
    rows: tuple[PersonFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceLevel:
    """``missed``: ended stays above the limit; ``late``: instances that are in the state and above it now."""

    state: str
    limit: int
    stays: int
    missed: int
    share: float
    late: int


@dataclass(frozen=True, slots=True)
class ServiceLevels(PlainRecord):
    extent: Extent
    levels: tuple[ServiceLevel, ...] = ()


@dataclass(frozen=True, slots=True)
class InstancePage(PlainRecord):
    """Instances behind a figure, by id. ``total``: of all pages; ``after``: for the next page, empty on the last."""

    total: int
    ids: tuple[str, ...] = ()
    after: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of two searches. ``low``, ``high``: the interval of 95 % of the difference ``second - first``;
    ``is_noise``: it includes 0, or there is too little to tell. Shares for a transition or a state, ms for a time."""

    name: str
    first: float
    second: float
    low: float
    high: float
    is_noise: bool
    source: str = ""
    target: str = ""
    event: str = ""


@dataclass(frozen=True, slots=True)
class Comparison(PlainRecord):
    """``states``: share of the instances that were in it, with regions also for each leaf; ``transitions``: share of
    the steps out of the source; ``times``: median of the stay."""

    first: Extent
    second: Extent
    states: tuple[Difference, ...] = ()
    transitions: tuple[Difference, ...] = ()
    times: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Deviation:
    """Steps that the definition of their version does not have. ``example``: the id of one instance."""

    version: int
    source: str
    target: str
    event: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Conformance(PlainRecord):
    """``fitting``: instances without a deviation; ``unchecked``: steps whose version is gone, or that lack a
    source."""

    extent: Extent
    fitting: int = 0
    unchecked: int = 0
    deviations: Sequence[Deviation] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Drift(PlainRecord):
    """A quantile of the stay in a state or of the time of a path, or the share of a path or of the steps out of a state
    that lead to another one, in the latest window and in the one before; ``ratio``: 0 where there is none before."""

    state: str
    now: float
    before: float
    count: int
    count_before: int

    @property
    def ratio(self) -> float:
        return self.now / self.before if self.before else 0.0
