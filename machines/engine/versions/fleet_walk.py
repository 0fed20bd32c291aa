"""Walks over all instances of a machine while they move, and counts each once in the class of what a plan does to it.

The walk reads the indexes of all states of all versions, page by page. An instance that moves meanwhile may leave an
index before the walk comes to it, for one that the walk has read already; its entry there has a later time. So each
partition is listed again from the moment the pass before began, until one atomic call lists all that is left: then
every instance that exists at that moment has been seen. A set of the seen ids makes each count once.
"""

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from machines.engine.connection import waiting
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, require_ok
from machines.engine.definitions.compiled import rebuild
from machines.engine.errors import STALE_PLAN, BadInput, EngineUnavailable, PlanError, UnknownMachine
from machines.engine.keys import Partition
from machines.engine.publishing.catalog import Catalog
from machines.engine.publishing.machine_meta import Growth

from .planning.plan import MigrationPlan
from .records import REFUSED, DryRun, MigrationClass, RefusedInstance

CLASSIFIED = 500  # ids in one call
MAX_PASSES = 100  # over what moved meanwhile; each is a small part of the one before
QUIET_PASSES = 2  # so many passes without a new id end the walk where times of entry lie in the future
CLOCK_SLACK_MS = 5  # by which a server's clock may be set back between two steps
CALL_US, ID_US = 30, 0.3  # server time of a call, and of each id in its reply, that the call cannot measure itself
EXAMPLES = 10


class Pace:
    """Keeps the calls of a walk to a share of the server's time: after a call of 4 ms at a third it rests for 8 ms."""

    def __init__(self, share: float) -> None:
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise BadInput(
                f"share is the part of the server's time that a dry run may take, above 0 up to 1, not {share!r}",
                code="SB622",
            )
        self._share = share
        self._began = self._next = 0.0  # times of the monotonic clock
        self.spent = 0.0  # seconds of the server's time so far

    def begin(self) -> None:
        """Wait until the next call may begin."""
        if (left := self._next - time.monotonic()) > 0:
            waiting.pause(left)
        self._began = time.monotonic()

    def end(self, seconds: float) -> None:
        """Note what the call took of the server's time. What it waited for other calls counts as rest."""
        self.spent += seconds
        self._next = self._began + seconds / self._share


Found = tuple[MigrationClass, Sequence[str]]
"""Instances of one page that were not seen before: what is true of all of them, and their ids."""


def make_class(facts: Mapping[str, Any], count: int = 0, examples: tuple[str, ...] = ()) -> MigrationClass:
    """Make a class of what the server said about it."""
    pending = {name: what for name, what in (facts["pending"] or {}).items() if what}
    return rebuild(MigrationClass, {**facts, "pending": pending, "count": count, "examples": examples})


class FleetClasses:
    """Counts instances by class. A class is the JSON text that the server gave it, so that equal ones are the same."""

    def __init__(self) -> None:
        self._seen: set[int] = set()  # hashes of ids, which take less memory than the ids
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        self._refused: list[tuple[str, str]] = []

    @property
    def total(self) -> int:
        return len(self._seen)

    def add(self, text: str, ids: Sequence[str]) -> Found | None:
        """Count those ids that were not seen before; return their class and them, None where there are none."""
        new = [id for id in dict.fromkeys(ids) if self.is_new(id)]
        if not new:
            return None
        self._seen.update(map(hash, new))
        if text not in self._facts:
            self._facts[text] = json.loads(text)
            self._counts[text], self._examples[text] = 0, []
        self._counts[text] += len(new)
        examples = self._examples[text]
        if len(examples) < EXAMPLES:
            examples += new[: EXAMPLES - len(examples)]
        if self._facts[text]["outcome"] == REFUSED:
            self._refused += ((id, text) for id in new)
        return make_class(self._facts[text]), new

    def is_new(self, id: str) -> bool:
        return hash(id) not in self._seen

    def build(self) -> DryRun:
        """Return the classes, the largest first."""
        texts = sorted(self._counts, key=lambda text: (-self._counts[text], text))
        classes = [make_class(self._facts[t], self._counts[t], tuple(self._examples[t])) for t in texts]
        return DryRun(self.total, classes, [self._make_refused(id, text) for id, text in self._refused])

    def _make_refused(self, id: str, text: str) -> RefusedInstance:
        facts = self._facts[text]
        return RefusedInstance(id, facts["version"], ", ".join(facts["configuration"]), facts["code"], facts["reason"])


class FleetWalk:
    """One dry run. ``pages`` does the work, and yields after each call, so that something may happen in between."""

    def __init__(self, caller: Caller, catalog: Catalog, plan: MigrationPlan, share: float) -> None:
        self.classes = FleetClasses()
        self.pace = Pace(share)
        self.calls = 0
        self._caller = caller
        self._catalog = catalog
        self._machine = plan.machine
        programs = [_encode(program) for program in plan.programs()]
        self._program = programs[0] if len(programs) == 1 else _encode(programs)
        self._run = secrets.token_hex(8)
        self._listed = self._list_began = 0

    def run(self, each: Callable[[MigrationClass, Sequence[str]], None] | None = None) -> DryRun:
        """Walk over all instances and return their classes. ``each`` is called with those of each page by class."""
        for page in self.pages():
            if each is not None:
                for found in page:
                    each(*found)
        return self.classes.build()

    def pages(self) -> Iterator[list[Found]]:
        """Walk, and yield after each call the instances that it has found."""
        growth = self._read_growth()
        for partition in self._catalog.partitions(self._machine):
            yield from self._walk_partition(partition)
        while (growth is not None and growth.under_way) or self._read_growth() != growth:
            # Instances keep their times of entry when they go to another partition: list all until nothing is new.
            growth, before = self._read_growth(), self.classes.total
            for partition in self._catalog.partitions(self._machine):
                yield from self._list(partition, "")
            if self.classes.total == before:
                return

    def classify(self, ids: Iterable[str]) -> dict[str, MigrationClass]:
        """Return the class of each of these instances; those that do not exist are left out."""
        groups = self._catalog.split(self._machine, ids)
        found: dict[str, MigrationClass] = {}
        for root, some in groups.items():
            found |= self._classify_in(Partition(root), some)
        growth = self._read_growth()
        if growth is not None and growth.under_way:
            for partition in self._catalog.partitions(self._machine):
                found |= self._classify_in(
                    partition, [id for some in groups.values() for id in some if id not in found]
                )
        return found

    def _classify_in(self, partition: Partition, ids: list[str]) -> dict[str, MigrationClass]:
        pages = self._classify(partition, ids)
        return {id: about for page in pages for about, listed in page for id in listed}

    def _read_growth(self) -> Growth | None:
        self._catalog.refresh()
        return self._catalog.find_growth(self._machine)

    def _walk_partition(self, partition: Partition) -> Iterator[list[Found]]:
        began, before, cursor = 0, self.classes.total, None
        while cursor != "":
            reply = self._call(partition, "walk", self._program, self._run, cursor or "", "")
            began, cursor = began or int(reply[3]), str(reply[1])
            yield self._count(reply)
        yield from self._list_moved(partition, began)
        if self.classes.total - before < int(reply[4]):  # a migration moves instances and keeps their times of entry
            yield from self._list(partition, "")

    def _list_moved(self, partition: Partition, began: int) -> Iterator[list[Found]]:
        """List what entered a state since the pass before began, until one call lists all of it."""
        quiet = 0
        for _ in range(MAX_PASSES):
            before, since = self.classes.total, str(began - CLOCK_SLACK_MS)
            yield from self._list(partition, since)
            quiet = quiet + 1 if self.classes.total == before else 0
            if self._listed == 1 or quiet == QUIET_PASSES:
                return
            began = self._list_began
        raise EngineUnavailable(
            f"the instances of {self._machine} move faster than the dry run can follow; nothing was changed, and it can"
            " be repeated, with a larger share or at a quieter time",
            code="SB623",
            retry_safe=True,
        )

    def _list(self, partition: Partition, since: str) -> Iterator[list[Found]]:
        """Classify those that are listed and new. ``_listed`` is the number of calls that list, ``_list_began`` the ms
        at which the first of them began."""
        self._listed, cursor = 0, None
        while cursor != "":
            reply = self._call(partition, "list", "", self._run, cursor or "", since)
            if not self._listed:
                self._list_began = int(reply[3])
            self._listed, cursor = self._listed + 1, str(reply[1])
            yield from self._classify(partition, [id for id in map(str, reply[5:]) if self.classes.is_new(id)])

    def _classify(self, partition: Partition, ids: list[str]) -> Iterator[list[Found]]:
        while ids:
            reply = self._call(partition, "ids", self._program, self._run, *ids[:CLASSIFIED])
            yield self._count(reply)
            ids = ids[int(reply[1]) :]

    def _count(self, reply: Sequence[Any]) -> list[Found]:
        pairs = zip(reply[5::2], reply[6::2], strict=True)
        return [found for text, ids in pairs if (found := self.classes.add(str(text), ids)) is not None]

    def _call(self, partition: Partition, *words: str, is_again: bool = False) -> list[Any]:
        self.pace.begin()
        self.calls += 1
        try:
            reply = self._caller.call("sb_classify", partition.root, *words)
        except EngineUnavailable as error:
            raise EngineUnavailable(
                f"the dry run of {self._machine} has ended without a result, because {partition.root} does not answer:"
                f" {error.message}; nothing was changed, and it can be repeated",
                code="SB621",
                retry_safe=True,
            ) from error
        if reply[0] == Status.NO_MACHINE:
            growth = self._read_growth()
            if growth is None or not growth.under_way:
                raise UnknownMachine(self._machine)
            done = str(len(words) - 3) if words[0] == "ids" else ""
            return [Status.OK, done, "0", "0", "0"]  # a partition that a growth has not made yet
        if reply[0] == Status.STALE and not is_again:
            self._catalog.copy_versions(self._machine)
            return self._call(partition, *words, is_again=True)
        if reply[0] == Status.STALE:
            raise PlanError(f"the plan has gone stale: {reply[1]}; nothing was changed", code=STALE_PLAN)
        require_ok("sb_classify", reply)
        listed = len(reply) - 5 if words[0] == "list" else sum(len(ids) for ids in reply[6::2])
        self.pace.end((int(reply[2]) + CALL_US + ID_US * listed) / 1e6)
        return reply


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
