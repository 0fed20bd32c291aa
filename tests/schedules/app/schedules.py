"""What the app declares."""

from machines.schedules import declare

NIGHTLY = {
    "name": "nightly",
    "when": {"cron": "30 2 * * *"},
    "zone": "Europe/Zurich",
    "what": {"do": "enqueue", "machine": "report", "src": "make_report"},
}

declare(NIGHTLY)
declare(NIGHTLY | {"name": "weekly", "when": {"cron": "@weekly"}})
