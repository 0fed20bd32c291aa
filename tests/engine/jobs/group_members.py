"""What the keys must say of the jobs of groups with limits."""

from __future__ import annotations

from typing import Any

from machines.engine.keys import Partition

HELD = 2**47  # of lua/jobs/group_limits.lua


def list_wrong_members(client: Any, keys: Partition, queue: str) -> list[str]:
    """Every member is a job that is where the member says, and every held job is a member; what is wrong, in words."""
    wrong, held = [], set()
    scores = dict(client.zrange(keys.ready(queue), 0, -1, withscores=True))
    for member in client.zrange(keys.members(queue), 0, -1):
        group, rest = member.split("\0")
        if rest[0] == "w" or " " in rest:
            continue  # of other partitions, as the home of the group counts them
        letter, order, job = (rest[0], int(rest[1:16]), rest[16:]) if rest[0] == "h" else (rest[0], 0, rest[1:])
        place, of = client.hmget(keys.job(job), "place", "group")
        score = scores.get(job, -1)
        right = {"l": place == "leased", "r": 0 <= score < HELD, "h": score == HELD + order}[letter]
        if of != group or not right:
            wrong.append(f"{member!r} is {place}, of {of}, with the score {score}")
        if letter == "h":
            held.add(job)
    wrong += [f"{job} is held and no member" for job, score in scores.items() if score >= HELD and job not in held]
    return wrong
