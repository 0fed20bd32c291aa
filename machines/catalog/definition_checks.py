"""Django system checks of the definitions in apps. They read files and import handlers; they need no Redis.

E031  a definition has an error, or its file cannot be read
E032  a machine stands in several files
W033  a state invokes a handler that no app has
W034  the handlers of an app cannot be imported
"""

from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register

from . import definition_files
from .definition_files import AppFile

TAG = "statemachines"


@register(TAG)
def check_definitions(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check the definitions of all apps, or of those that are named."""
    files = definition_files.read_files()
    labels = {config.label for config in app_configs} if app_configs is not None else None
    chosen = [one for one in files if labels is None or one.label in labels]
    return [*_errors(chosen), *_duplicates(files, labels), *_handlers(chosen)]


def _errors(files: list[AppFile]) -> list[CheckMessage]:
    return [
        Error(
            one.file.describe(finding),
            hint="`manage.py machine validate FILE` lists all findings.",
            id="signalbox.E031",
        )
        for one in files
        for finding in one.file.submission.errors
    ]


def _duplicates(files: list[AppFile], labels: set[str] | None) -> list[CheckMessage]:
    return [
        Error(str(found), hint="A machine has one file in one app.", id="signalbox.E032")
        for found in definition_files.find_duplicates(files)
        if labels is None or any(one.label in labels for one in found.files)
    ]


def _handlers(files: list[AppFile]) -> list[CheckMessage]:
    if not any(definition_files.has_jobs(one) for one in files):
        return []
    from machines.worker.registry import discover

    try:
        known = list(discover())
    except Exception as error:
        what = f"the handlers of an app cannot be imported, so they were not compared with the definitions: {error!r}"
        return [Warning(what, hint="Workers cannot start either.", id="signalbox.W034")]
    hint = "Register it with @handler in an app's handlers.py. Silence this where workers elsewhere have it."
    missing = definition_files.find_missing_handlers(files, known)
    return [Warning(str(one), hint=hint, id="signalbox.W033") for one in missing]
