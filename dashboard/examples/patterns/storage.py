"""The sections of sessions, write buffer, cardinality, scoreboard, and compare and set: what is kept in Redis."""

from __future__ import annotations

import random as dice
import time
from datetime import UTC, datetime
from random import Random
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest, QueryDict

from dashboard.shared.times import format_until
from machines.connections import get_pattern
from machines.engine.keys import choose_partition
from machines.patterns import Batch, Cardinality, Gone, Records, Scoreboard, Sessions, Write, WriteBuffer
from machines.patterns.base import check_key

from .section import Form, Section, Table, View, connect, read_choice, read_number

SELDOM = 0.15  # of the turns of the traffic that people might be in the middle of


class SessionsSection(Section):
    """Baskets of the person who looks. The browser holds the token, Redis its SHA-256."""

    name, title = "sessions", "Sessions"
    summary = "Sessions under a token: sliding expiry, rotation and revocation; Redis stores only a hash of the token."
    NAME, MOST, PARTITIONS = "demo.baskets", 4, 2
    MOST_TEA = 99
    TRAFFIC = "traffic"  # the subject of the sessions of the traffic
    SESSION = "patterns_sessions"  # where in the login of this browser its token is
    _token = ""  # of the traffic

    @staticmethod
    def open() -> Sessions:
        most, parts = SessionsSection.MOST, SessionsSection.PARTITIONS
        return get_pattern(
            Sessions, SessionsSection.NAME, ttl=120, lifetime=600, most=most, drop=True, partitions=parts
        )

    def show(self, request: HttpRequest) -> View:
        subject, now = str(request.user.pk), time.time() * 1000
        own = str(request.session.get(self.SESSION, "")).partition(".")[2].partition(".")[0]
        found = self.open().of_each([subject, self.TRAFFIC])
        mine = next((row for row in found[subject] if row.handle == own), None)
        rows = [
            (row.handle, whose + (" (this browser)" if row == mine else ""), row.state["tea"], row.revision,
             format_until((now - row.expires) / 1000))
            for whose, held in (("yours", found[subject]), ("traffic", found[self.TRAFFIC])) for row in held
        ]  # fmt: skip
        forms = [Form(("create_session", *(["rotate_token"] if mine else []), "revoke_all"))]
        if mine:
            forms.append(Form(("add_tea",), "This browser's basket", {"revision": mine.revision}))
        if found[subject]:
            forms.append(Form(("revoke",), "One session", choices={"handle": [row.handle for row in found[subject]]}))
        keys = connect()[1].session(self.NAME, choose_partition(subject, self.PARTITIONS))
        return View(
            {"yours": len(found[subject]), "max": self.MOST},
            "A new basket replaces the one that expires first. Each use extends the expiry, up to ten minutes after "
            "creation.",
            forms,
            [keys.of(subject), *(keys.one(row.handle) for row in found[subject])],
            [Table("Sessions", ("Session", "Whose", "Tea", "Revision", "Expires"), rows)],
        )

    def do_create_session(self, request: HttpRequest, form: QueryDict) -> str:
        made = self.open().create(str(request.user.pk), {"tea": 0})
        request.session[self.SESSION] = made.token
        return f"session {made.handle} created; Redis stores the SHA-256 of its token"

    def do_add_tea(self, request: HttpRequest, form: QueryDict) -> str:
        """Add one if the basket is still at the revision that the page showed."""
        sessions, token = self.open(), request.session.get(self.SESSION, "")
        count = min(self.MOST_TEA, sessions.get(token).state["tea"] + 1)
        after = sessions.put(token, {"tea": count}, expect=read_number(form, "revision"))
        return f"{count} tea in the basket, revision {after.revision}"

    def do_rotate_token(self, request: HttpRequest, form: QueryDict) -> str:
        turned = self.open().rotate(request.session.get(self.SESSION, ""))
        request.session[self.SESSION] = turned.token
        return f"token of session {turned.handle} rotated; the old one is invalid"

    def do_revoke(self, request: HttpRequest, form: QueryDict) -> str:
        if not self.open().revoke_handle(str(request.user.pk), form.get("handle", "")):
            raise Gone("the session had already ended")
        return f"session {form['handle']} revoked"

    def do_revoke_all(self, request: HttpRequest, form: QueryDict) -> str:
        many = self.open().revoke_all(str(request.user.pk))
        return f"{many} of your sessions revoked" if many else "you have no sessions"

    def move(self, random: Random) -> None:
        """Fill a basket, which goes on under another token now and then."""
        sessions = self.open()
        try:
            found = sessions.rotate(self._token) if random.random() < SELDOM else sessions.get(self._token)
        except Gone:
            found = sessions.create(self.TRAFFIC, {"tea": 0})
        self._token = found.token
        sessions.put(self._token, {"tea": (found.state["tea"] + 1) % self.MOST_TEA})


class WriteBufferSection(Section):
    name, title = "write_buffer", "Write buffer"
    summary = "Combines many small writes into few large ones; a batch of a crashed flusher is retried."
    NAME, MOST = "demo.clicks", 50
    DOORS = ("front door", "back door", "gate")
    LEASE, LIMIT = 10.0, 2  # seconds, entries of a batch
    GATHER = 20.0  # seconds that clicks wait before the traffic writes them out
    WRITTEN, KEPT, IDS_KEPT = "patterns.write_buffer.written", 600, 200  # seconds

    @staticmethod
    def open() -> WriteBuffer:
        return get_pattern(WriteBuffer, WriteBufferSection.NAME, most=WriteBufferSection.MOST)

    def show(self, request: HttpRequest) -> View:
        stats, keys, now = self.open().stats(), connect()[1].buffer(self.NAME, 0), time.time() * 1000
        written = cache.get(self.WRITTEN, {"rows": {}})["rows"]
        batches = [
            (lent.id, lent.count, lent.takes, format_until((now - lent.again) / 1000)) for lent in stats.lent[:5]
        ]
        return View(
            {
                "pending": stats.pending,
                "in progress": stats.held,
                "oldest": f"{stats.oldest:.0f} s",
                "max": self.MOST,
            },
            f"A claimed batch that is not settled is retried after {self.LEASE:.0f} s with the same id and entries.",
            [
                Form(("click", "add_100_clicks"), "Write", choices={"door": self.DOORS}),
                Form(("flush_batch", "claim_and_crash", "write_and_crash"), "Flush"),
            ],
            [keys.pending, *map(keys.open, self.DOORS), keys.claims, *(keys.batch(lent.id) for lent in stats.lent[:3])],
            [
                Table("Written", ("Door", "Writes", "Clicks"), [(on, *written.get(on, (0, 0))) for on in self.DOORS]),
                Table("Batches in progress", ("Batch", "Entries", "Attempts", "Retry"), batches),
            ],
        )

    def do_click(self, request: HttpRequest, form: QueryDict) -> str:
        door = read_choice(form, "door", self.DOORS)
        self.open().add(door, counters={"clicks": 1}, fields={"by": request.user.get_username()[:150]})
        return f"one click at the {door} buffered"

    def do_add_100_clicks(self, request: HttpRequest, form: QueryDict) -> str:
        self.open().add_many(Write(self.DOORS[number % 3], {"clicks": 1}) for number in range(100))
        return "100 clicks buffered in one call, in at most three entries"

    def do_flush_batch(self, request: HttpRequest, form: QueryDict) -> str:
        batch = self._claim()
        written = self._write(batch)
        self.open().settle(batch)
        return f"{written}, and settled"

    def do_claim_and_crash(self, request: HttpRequest, form: QueryDict) -> str:
        return f"batch {self._claim().id} was claimed and its flusher crashed: retried in {self.LEASE:.0f} s"

    def do_write_and_crash(self, request: HttpRequest, form: QueryDict) -> str:
        """Write and do not settle, so that the same entries come twice."""
        written = self._write(self._claim())
        return f"{written}, then its flusher crashed: retried in {self.LEASE:.0f} s, counted once"

    def _claim(self) -> Batch:
        batch = self.open().claim(limit=self.LIMIT, lease=self.LEASE)
        if batch is None:
            raise Gone("nothing to claim: add clicks, or wait until a lease expires")
        return batch

    def _write(self, batch: Batch) -> str:
        """Keep the sums together with the ids of what is in them, as a transaction would."""
        kept = cache.get(self.WRITTEN, {"rows": {}, "ids": []})
        fresh = [entry for entry in batch.entries if entry.id not in kept["ids"]]
        for entry in fresh:
            writes, clicks = kept["rows"].get(entry.entity, (0, 0))
            kept["rows"][entry.entity] = (writes + 1, clicks + entry.counters["clicks"])
        kept["ids"] = [*kept["ids"], *(entry.id for entry in fresh)][-self.IDS_KEPT :]
        cache.set(self.WRITTEN, kept, self.KEPT)
        twice = len(batch.entries) - len(fresh)
        many = "entry" if len(fresh) == 1 else "entries"
        known = f", {twice} duplicates skipped" if twice else ""
        return f"batch {batch.id}, attempt {batch.takes}: {len(fresh)} {many} written{known}"

    def move(self, random: Random) -> None:
        """Click at a door, and write out what has waited for long or was left by a flusher that died."""
        buffer = self.open()
        buffer.flush(self._write, limit=self.LIMIT, lease=self.LEASE, gather=self.GATHER)
        buffer.add(random.choice(self.DOORS), counters={"clicks": 1}, fields={"by": "traffic"})


class CardinalitySection(Section):
    name, title = "cardinality", "Cardinality"
    summary = "Unique counts per day, week and month: an exact set while small, a 12 KB sketch after."
    NAME, EXACT = "demo.visitors", 200  # members up to which a day of the demo is exact
    CROWD, AT_ONCE = 5_000, 150  # people there are, and that come with one button
    DAY = 86_400_000  # ms

    @staticmethod
    def open() -> Cardinality:
        return get_pattern(Cardinality, CardinalitySection.NAME, exact=CardinalitySection.EXACT, keep=31)

    def show(self, request: HttpRequest) -> View:
        visitors, keys = self.open(), connect()[1].distinct(self.NAME)
        today, rows, facts = int(time.time() * 1000) // self.DAY, [], {}
        for period, label in (("day", "today"), ("week", "this week"), ("month", "this month")):
            count = visitors.count(period)
            facts[label] = f"{'' if count.exact else '≈ '}{count.number:,}"
        for count in visitors.series("day", 5):
            kind = "sketch" if not count.exact else "set" if count.number else "–"
            rows.append((f"{datetime.fromtimestamp(count.begin / 1000, UTC):%d %b %Y}", count.number, kind))
        return View(
            facts,
            f"Add visitors until there are more than {self.EXACT}: the set is then replaced by a sketch and the count "
            "becomes an estimate (standard error 0.81 %). A visitor of both days counts once in the week.",
            [Form(("add_visitors_today", "add_visitors_yesterday", "add_the_same_ten"))],
            [keys.set(today, ""), keys.sketch(today, ""), keys.sketch(today - 1, "")],
            [Table("The last five days", ("Day (UTC)", "Visitors", "Structure"), rows)],
        )

    def do_add_visitors_today(self, request: HttpRequest, form: QueryDict) -> str:
        return f"{self.AT_ONCE} visitors today, {self._add(0)} of them new today"

    def do_add_visitors_yesterday(self, request: HttpRequest, form: QueryDict) -> str:
        return f"{self.AT_ONCE} visitors yesterday, {self._add(1)} of them new that day"

    def do_add_the_same_ten(self, request: HttpRequest, form: QueryDict) -> str:
        new = self.open().add(*(f"regular-{number}" for number in range(10)))
        return f"the same 10 visitors, {new} of them new today"

    def _add(self, ago: int) -> int:
        people = (f"person-{number}" for number in dice.sample(range(self.CROWD), self.AT_ONCE))
        return self.open().add(*people, now=int(time.time() * 1000) - ago * self.DAY)

    def move(self, random: Random) -> None:
        """Add so few different people that today stays exact until a person adds more."""
        self.open().add(*(f"person-{random.randrange(self.EXACT // 2)}" for _ in range(3)))


class Boards:
    """A board of today and one that fades, with the same points."""

    MOST, HALF_LIFE = 8, 60  # seconds
    FADING = "demo.fading"

    def __init__(self) -> None:
        self.today = get_pattern(Scoreboard, "demo.today", most=self.MOST, period="day", keep=1)
        self.fading = get_pattern(Scoreboard, self.FADING, most=self.MOST, half_life=self.HALF_LIFE)


class ScoreboardSection(Section):
    name, title = "scoreboard", "Scoreboard"
    summary = "Rankings with ties, daily boards and decaying scores, in bounded space."
    PLAYERS = ("ann", "bob", "cid", "dan", "eve", "fay")

    def show(self, request: HttpRequest) -> View:
        boards, keys = Boards(), connect()[1].board(Boards.FADING)
        tables = []
        for title, board in (("Today", boards.today), ("Fading", boards.fading)):
            places = board.top(boards.MOST)
            rows = [(f"{at.rank}{' =' if at.tied else ''}", at.member, round(at.score, 2)) for at in places]
            tables.append(Table(title, ("Rank", "Player", "Points"), rows))
        return View(
            {"capacity": boards.MOST, "half-life of the fading board": f"{boards.HALF_LIFE} s"},
            "Points go to both boards; players with the same points share a rank.",
            [Form(("give_1_point", "give_5_points", "reset_both"), choices={"player": self.PLAYERS})],
            [keys.scores("all"), keys.epoch],
            tables,
        )

    def do_give_1_point(self, request: HttpRequest, form: QueryDict) -> str:
        return self._give(form, 1)

    def do_give_5_points(self, request: HttpRequest, form: QueryDict) -> str:
        return self._give(form, 5)

    def _give(self, form: QueryDict, points: int) -> str:
        boards, player = Boards(), check_key(form.get("player", ""), "a player", most=20)
        boards.fading.add(player, points)
        place = boards.today.add(player, points)
        if place is None:
            return f"{player} does not reach the top {boards.MOST}"
        return f"{player} has {place.score:g} today, rank {place.rank}{', tied' if place.tied else ''}"

    def do_reset_both(self, request: HttpRequest, form: QueryDict) -> str:
        boards = Boards()
        boards.fading.reset()
        return f"both boards reset; {boards.today.reset()} entries removed from today's board"

    def move(self, random: Random) -> None:
        boards, player = Boards(), random.choice(self.PLAYERS)
        for board in (boards.today, boards.fading):
            board.add(player, 1)


class CasSection(Section):
    """One text, a writer who saw an older one, and an update that others disturb."""

    name, title = "cas", "Compare and set"
    summary = "Write only over the value that was read; on a conflict, retry with the current value."
    NAME, KEY, TTL = "demo.cas", "note", 3600.0  # seconds

    @staticmethod
    def open() -> Records:
        return get_pattern(Records, CasSection.NAME, ttl=CasSection.TTL)

    def show(self, request: HttpRequest) -> View:
        keys, record = connect()[1].record(self.NAME), self.open().get(self.KEY)
        value = record.value if isinstance(record.value, dict) else {}
        former = value.get("former", 0)
        acts = ("write", *(["write_with_conflict"] if record.generation else []))
        return View(
            {"text": value.get("text") or "none", "generation": record.generation, "previous": former},
            "A write names the generation that it replaces; with the previous one it is refused. An update with two "
            "concurrent writers retries: each refusal returns the current value, so a retry is one call.",
            [
                Form(acts, hidden={"generation": record.generation, "former": former}, texts={"text": ""}),
                Form(("update_with_contention",)),
            ],
            [keys.one(self.KEY), keys.last],
        )

    def do_write(self, request: HttpRequest, form: QueryDict) -> str:
        return self._put(form, read_number(form, "generation"))

    def do_write_with_conflict(self, request: HttpRequest, form: QueryDict) -> str:
        return self._put(form, read_number(form, "former"))

    def _put(self, form: QueryDict, seen: int) -> str:
        value = {"text": form.get("text", "")[:60], "former": seen}
        written = self.open().put(self.KEY, value, expect=seen)
        return f"generation {seen} replaced by {written.generation}"

    def do_update_with_contention(self, request: HttpRequest, form: QueryDict) -> str:
        """Update while two other writers get in the way."""
        held, attempts = self.open(), 0

        def write(value: Any) -> Any:
            nonlocal attempts
            attempts += 1
            if attempts < 3:
                text = f"concurrent write {attempts}"
                held.put(self.KEY, {"text": text, "former": held.get(self.KEY).generation}, expect=None)
            return {"text": f"written at attempt {attempts}", "former": held.get(self.KEY).generation}

        return f"two conflicts; the third attempt wrote generation {held.update(self.KEY, write).generation}"

    def move(self, random: Random) -> None:
        if random.random() < SELDOM:
            text = f"the traffic was here, {random.randrange(100)}"
            self.open().update(self.KEY, lambda value: {"text": text, "former": 0})
