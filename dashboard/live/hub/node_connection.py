"""The hub's two connections to one server: one that reads, and one that hears which partitions changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from dashboard.live.limits import Limits
from machines.engine.connection.redis_url import Seed

from .clients import connect
from .subscriber import Subscriber

Words = Sequence[Any]
#: asked before and after: what the server does for others, or other processes of its machine, does not count
CPU = ("INFO", "cpu")
#: of the thread that carries out commands; where the system does not count that, of the process
SPENT = (("used_cpu_user_main_thread", "used_cpu_sys_main_thread"), ("used_cpu_user", "used_cpu_sys"))


class NodeConnection:
    """``channel``: that of published definitions, if this server has it; else "". ``node``: host and port in a
    cluster."""

    def __init__(
        self,
        url: str,
        limits: Limits,
        ring: Callable[[str], None],
        published: Callable[[], None],
        *,
        channel: str = "",
        node: Seed | None = None,
    ) -> None:
        self.channel = channel
        self.client = connect(url, limits, node)
        # RESP2 and bytes: its messages then come in one shape, a PONG included, which redis-py cannot read as text.
        listening = connect(url, limits, node, protocol=2, decode_responses=False)
        self._busy: float | None = 0.0
        self._subscriber = Subscriber(listening, limits, ring, published, channel)

    async def open(self) -> Self:
        """Open the connections. Raises a RedisError or OSError."""
        await self._subscriber.open()
        return self

    async def close(self) -> None:
        await self._subscriber.close()
        await self.client.aclose()

    @property
    def run_id(self) -> str:
        return self._subscriber.run_id

    @property
    def hints(self) -> bool:
        """Whether it says what changed."""
        return self._subscriber.hints

    def check(self) -> None:
        """Raise what ended the listening, if anything has."""
        self._subscriber.check()

    async def probe(self) -> None:
        """Ask both connections for a sign of life, within the deadline."""
        await self._subscriber.probe()

    async def listen_to(self, roots: Iterable[str]) -> None:
        """Listen to exactly these partitions from now on; when it returns, every later ring is heard."""
        await self._subscriber.listen_to(roots)

    async def send(self, commands: Iterable[Words]) -> list[Any]:
        """Send commands in one round trip; return the answer of each, or its error."""
        pipeline = self.client.pipeline(transaction=False)
        for words in (CPU, *commands, CPU):
            pipeline.execute_command(*words)
        began, *answers, ended = await pipeline.execute(raise_on_error=False)
        spent = _count_seconds(began, ended)
        self._busy = None if spent is None or self._busy is None else self._busy + spent
        return answers

    def take_busy(self) -> float | None:
        """Return the seconds of processor time that the server took for what was sent since the last call; None if it
        did not say."""
        busy, self._busy = self._busy, 0.0
        return busy


def _count_seconds(began: Any, ended: Any) -> float | None:
    """Return the seconds of processor time between two answers to INFO; None if one of them does not say."""
    if not isinstance(began, dict) or not isinstance(ended, dict):
        return None
    for names in SPENT:
        if all(name in ended for name in names):
            return max(0.0, sum(float(ended[name]) - float(began[name]) for name in names))
    return None
