"""One websocket: authentication, commands, subscriptions. Its content comes from the hub."""

import asyncio
import contextlib
import contextvars
import logging
from typing import Any

from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.utils import await_many_dispatch

from dashboard.live import messages
from dashboard.live.hub.hub import Full, hub
from dashboard.live.limits import limits
from dashboard.live.messages import BadFrame, CloseCode, Command, ErrorCode
from dashboard.live.outbox import EXTENSION, Direct, Outbox
from dashboard.live.topics import Topic

from .admission import CommandRateLimit, Person, quotas
from .permissions import Rights, RightsUnknown, SocketDisclosures, asking, least, session_monitor

log = logging.getLogger(__name__)


class LiveConsumer(AsyncWebsocketConsumer):
    """The socket's messages and its own errands (``live.close``) are handled one after the other."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.scope, self.base_send = scope, send
        self.limits = limits()
        self.errands: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.budget = CommandRateLimit(self.limits.commands, self.limits.commands_per_second)
        self.topics: dict[Topic, Topic] = {}  # as it was asked for -> as this user may see it
        self.outbox: Outbox | None = None
        self.person: Person | None = None
        self.sender: asyncio.Task[None] | None = None
        self.disclosures = SocketDisclosures(scope)
        try:
            await await_many_dispatch([receive, self.errands.get], self.dispatch)
        except StopConsumer:
            pass
        finally:
            await self._leave()

    # Connecting and leaving

    async def connect(self) -> None:
        user, session = self.scope.get("user"), self.scope.get("session")
        self.session = getattr(session, "session_key", None) or ""
        await self.accept()
        if not self.session or not getattr(user, "is_authenticated", False):
            self._end(CloseCode.SIGNED_OUT)
            return
        who = str(user.pk)
        self.person = quotas().greet(who)
        if self.person is None:
            self._end(CloseCode.TOO_MANY)
        elif (outbox := hub().enter(who, self._direct())) is None:
            self._end(CloseCode.TRY_LATER)
        else:
            self.outbox = outbox
            self.find_disclosed = hub().find_disclosed
            session_monitor().enter(self)
            self.sender = asyncio.create_task(self._send_all(outbox), name="live sender")

    def _direct(self) -> Direct | None:
        """Return the connection itself, if the server offers it; else every frame goes through ``send``."""
        connection = (self.scope.get("extensions") or {}).get(EXTENSION)
        if connection is None:
            return None
        context = contextvars.copy_context()  # the audit has the id of this socket's request, not that of the hub
        return Direct(connection, lambda: context.run(self._look_for_disclosures))

    async def _leave(self) -> None:
        session_monitor().exit(self)
        if self.sender is not None:
            self.sender.cancel()
            await asyncio.gather(self.sender, return_exceptions=True)
        outbox, self.outbox = self.outbox, None
        if outbox is not None:
            for permitted in self.topics.values():
                hub().unsubscribe(outbox, permitted)
            self.person.topics -= len(self.topics)
            self.topics.clear()
        if self.person is not None:
            quotas().part(self.person)
        if outbox is not None:
            await hub().exit(outbox)

    # What the client says

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.outbox is None:
            return
        try:
            command = messages.read_command(bytes_data if text_data is None else text_data, limit=self.limits.frame)
            cost = 1
        except BadFrame as error:
            command, cost = None, self.limits.bad_frame_cost
            self._refuse(error.code, error.message, error.topic)
        if not (self.budget.spend(cost) and self.person.commands.spend(cost)) or self.outbox.overflowed:
            self._end(CloseCode.ABUSE)
        elif command is not None:
            await self._carry_out(command)

    async def _carry_out(self, command: Command) -> None:
        if command.kind == "unsubscribe":
            self._drop(command.topic)
        elif command.kind == "subscribe" and (why := self._explain_full(command.topic)):
            self._refuse(ErrorCode.TOO_MANY_TOPICS, why, str(command.topic))
        elif (permitted := await self._permit(command.topic)) is not None and self.outbox is not None:
            if command.kind == "subscribe":
                self._subscribe(command.topic, permitted)
            else:
                self._resync(command.topic)

    async def _permit(self, topic: Topic) -> Topic | None:
        """Return the topic as the user may see it at this moment; send the client an error if not at all.

        If the permissions are unknown, the command is carried out and the socket muted until the session monitor knows
        more.
        """
        try:
            rights = await asking().ask(self.session, deadline=self.limits.recheck_deadline)
        except RightsUnknown:
            self._refuse(ErrorCode.UNAVAILABLE, "your rights cannot be looked up now; values follow later", str(topic))
            self.mute()
            session_monitor().hurry()
            return least(topic)
        self.apply_rights(rights)
        permitted = None if rights is None else rights.permit(topic)
        if permitted is None and self.outbox is not None:
            self._refuse(ErrorCode.FORBIDDEN, f"you may not watch {topic}", str(topic))
        return permitted

    def _subscribe(self, topic: Topic, permitted: Topic) -> None:
        if self.topics.get(topic, permitted) != permitted:
            self._drop(topic)
        if why := self._explain_full(topic):  # others of this person have come meanwhile
            self._refuse(ErrorCode.TOO_MANY_TOPICS, why, str(topic))
            return
        try:
            hub().subscribe(self.outbox, permitted)
        except Full:
            self._refuse(ErrorCode.TOO_MANY_TOPICS, "too many topics are watched in all", str(topic))
        else:
            self.person.topics += topic not in self.topics
            self.topics[topic] = permitted

    def _explain_full(self, topic: Topic) -> str:
        """Return why no further topic may be watched; "" if it may. Called before anything is looked up."""
        limits = self.limits
        if topic in self.topics:
            return ""
        if len(self.topics) >= limits.topics_per_socket:
            return f"a socket watches at most {limits.topics_per_socket} topics"
        if self.person.topics >= limits.topics_per_person:
            return f"a person watches at most {limits.topics_per_person} topics in all windows together"
        return ""

    def _resync(self, topic: Topic) -> None:
        if topic in self.topics:
            self.outbox.snapshot(self.topics[topic])
        else:
            self._refuse(ErrorCode.BAD_TOPIC, f"this socket does not watch {topic}; subscribe first", str(topic))

    def _drop(self, topic: Topic) -> None:
        if topic in self.topics:
            hub().unsubscribe(self.outbox, self.topics.pop(topic))
            self.person.topics -= 1

    def _refuse(self, code: ErrorCode, message: str, topic: str | None = None) -> None:
        self.outbox.notice(messages.encode(messages.error(code, message, topic)))

    # What the session monitor finds

    def apply_rights(self, rights: Rights | None) -> None:
        if self.outbox is None:
            return
        if rights is None:
            self._end(CloseCode.SIGNED_OUT)
            return
        for topic, shown in list(self.topics.items()):
            permitted = rights.permit(topic)
            if permitted != shown:
                self._drop(topic)
                if permitted is None:
                    self._refuse(ErrorCode.FORBIDDEN, f"you may no longer watch {topic}", str(topic))
                else:
                    self._subscribe(topic, permitted)  # its snapshot takes the place of what was shown
        self.outbox.mute(False)

    def mute(self) -> None:
        if self.outbox is not None:
            self.outbox.mute(True)

    # What goes out

    async def _send_all(self, outbox: Outbox) -> None:
        """Send one frame at a time; disconnect a client that does not take one in time.

        If frames are written directly, it sleeps while the client takes them.
        """
        while True:
            frame = await outbox.next()
            try:
                async with asyncio.timeout(self.limits.send_deadline):
                    await self.send(text_data=frame)
            except TimeoutError:
                return self._end(CloseCode.TOO_SLOW)
            except Exception as error:  # each server has its own word for "the client is gone"
                log.debug("a socket is gone: %r", error)
                return self._end(None)
            self._look_for_disclosures()
            if len(outbox):  # sending may wait for nothing: others come in between
                await asyncio.sleep(0)

    def _look_for_disclosures(self) -> None:
        self.disclosures.look(self.topics.values(), self.find_disclosed)

    def _end(self, code: CloseCode | None) -> None:
        """Ask for the end of this socket; safe to call from anywhere, more than once."""
        if self.outbox is not None:
            self.outbox.mute(True)
        self.errands.put_nowait({"type": "live.close", "code": code})

    async def live_close(self, message: dict[str, Any]) -> None:
        """Close the socket. A slow client is given some time to take the close frame, then it goes without."""
        if message["code"] is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(self.limits.close_grace):
                    await self.close(int(message["code"]))
        raise StopConsumer
