"""How the hash of a job is stored."""


def read_job(client, key: str) -> dict[str, str]:
    """Read the fields of a job, those of a packed one as if each were stored by itself."""
    return unpack_job(client.hgetall(key))


def unpack_job(row: dict[str, str]) -> dict[str, str]:
    """Unpack the fields of a packed job, in place."""
    if row.get("plain", "").count(" ") >= 4:
        src, queue, invoke, created, instance = row.pop("plain").split(" ", 4)
        row |= {"src": src, "queue": queue, "created": created}
        row |= {"invoke": invoke, "instance": instance} if instance else {}
    if row.get("token", "").count(" ") >= 2:
        row["token"], row["taken"], row["worker"] = row["token"].split(" ", 2)
        row["attempt"] = "1"
    return row
