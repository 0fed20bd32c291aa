"""Every limit and interval of the live view.

Override single ones with ``SIGNALBOX["LIVE"] = {"reconcile": 5.0}`` in the settings; an unknown name
stops the start. Times are seconds, sizes bytes.
"""

from dataclasses import dataclass, fields

from django.core.exceptions import ImproperlyConfigured

from machines.conf import conf


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    #: from a hint to the second read it asks for: the pulse's 50 ms, during which further steps do not ring, and a
    #: margin. The first read comes at once
    settle: float = 0.055
    #: least time between two reads, so that many staggered partitions still share pipelines
    read_gap: float = 0.05
    #: frames a process sends in a second at most: with a thousand sockets it reads sixteen times a second
    frames: int = 16_000
    #: share of the time that a hub may wait for what it reads: after a read of 10 ms it rests for 100
    read_share: float = 0.1
    #: but never longer than this, so that a step shows within half a second on a busy server, too ...
    read_rest: float = 0.3
    #: ... unless that many sources are read at once that the reads themselves are the load
    read_many: int = 200
    #: how often everything watched is read again whatever was heard: heals a lost hint, proves the data fresh
    reconcile: float = 2.0
    #: the same where the server gives no hints (``CONFIG SET`` forbidden)
    reconcile_without_hints: float = 0.5
    #: deadline of one command, and of the subscriber's ping: a half-open connection is noticed after this
    deadline: float = 3.0
    #: longest pause between two attempts to reach Redis again (full jitter below it)
    backoff: float = 5.0
    #: commands in one pipeline; more are read in several, so that no single one holds the server or the loop long
    pipeline: int = 100
    #: sources that are read for the first time in one go; people take turns
    first_reads: int = 200
    #: how long the loop hands out what was read before it looks at anything else
    slice: float = 0.01
    #: topics watched by all sockets of a process together
    topics: int = 5000
    #: sockets of a process
    sockets: int = 5000
    #: topics of one socket, and of one person in all of theirs
    topics_per_socket: int = 64
    topics_per_person: int = 256
    #: sockets of one person, and of one address, which people share
    sockets_per_person: int = 40
    sockets_per_address: int = 400
    #: attempts to connect that an address may make at once, and how many come back each second
    connects: int = 120
    connects_per_second: float = 20.0
    #: a command frame: the longest sensible one is a topic of under 300 bytes
    frame: int = 4096
    #: error frames waiting for one socket before it is closed as abusive
    notices: int = 32
    #: command frames a socket may send at once, and how many come back each second
    commands: int = 200
    commands_per_second: float = 20.0
    #: the same for all sockets of a person together
    commands_of_person: int = 600
    commands_of_person_per_second: float = 60.0
    #: what a bad frame costs, in commands
    bad_frame_cost: int = 10
    #: one frame that takes longer than this to hand over: the client is too slow
    send_deadline: float = 10.0
    #: how long a slow client has to take its close frame before it is dropped without
    close_grace: float = 5.0
    #: how often every socket's session and rights are looked at again
    recheck: float = 10.0
    #: deadline of one such look; without an answer in time nothing is sent on
    recheck_deadline: float = 5.0


def limits() -> Limits:
    """Return the limits in force: the defaults, changed by the settings."""
    given = conf.LIVE
    known = {field.name for field in fields(Limits)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ImproperlyConfigured(
            f'SIGNALBOX["LIVE"]: no limit named {", ".join(unknown)}; there are {", ".join(sorted(known))}'
        )
    return Limits(**(_derive_limits(conf.SOCKETS) | given))


def _derive_limits(sockets: int) -> dict[str, int | float]:
    """Derive limits from the number of sockets one person may have; an address is shared by ten or more."""
    return {
        "sockets_per_person": sockets,
        "sockets_per_address": 10 * sockets,
        "connects": 3 * sockets,
        "connects_per_second": sockets / 2,
    }
