"""What a worker does for states with an `invoke`."""

from machines.worker import handler


@handler("ship")
def ship(job):
    return {"parcel": f"P-{job.instance}"}
