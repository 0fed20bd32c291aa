"""How a job is stored: a plain one as a string, any other as a hash."""

import re

LEASE = re.compile(r" (\S+) (\S+) (\d+) ")
JOB = re.compile(r"(\S+) (\S+) (\S*) (\d+) (.*).", re.DOTALL)


def read_job(client, key: str) -> dict[str, str]:
    """Read the fields of a job, those of a plain one as if each were stored by itself; {} for what is no job."""
    if client.type(key) == "string":
        return parse_job(client.get(key) or "")
    return unpack_job(client.hgetall(key))


def parse_job(text: str) -> dict[str, str]:
    """Parse a plain job."""
    lease = LEASE.match(text)
    begin = lease.end() + int(lease[3]) if lease else 0
    job = JOB.fullmatch(text, begin)
    if not job:
        return {}
    src, queue, invoke, created, rest = job.groups()
    row = {"place": "leased" if lease else "ready", "src": src, "queue": queue, "created": created}
    if lease:
        row |= {"token": lease[1], "taken": lease[2], "worker": text[lease.end() : begin], "attempt": "1"}
    if invoke:
        return row | {"invoke": invoke, "instance": rest}
    return row | ({"input": rest} if rest else {})


def spread_job(client, key: str, **changes: str) -> None:
    """Store a plain job as a hash, with other values of some fields."""
    row = read_job(client, key) | changes
    client.delete(key)
    client.hset(key, mapping=row)


def unpack_job(row: dict[str, str]) -> dict[str, str]:
    """Unpack the fields of a job that was plain when plain jobs were hashes, in place."""
    if row.get("plain", "").count(" ") >= 4:
        src, queue, invoke, created, instance = row.pop("plain").split(" ", 4)
        row |= {"src": src, "queue": queue, "created": created}
        row |= {"invoke": invoke, "instance": instance} if instance else {}
    if row.get("token", "").count(" ") >= 2:
        row["token"], row["taken"], row["worker"] = row["token"].split(" ", 2)
        row["attempt"] = "1"
    return row
