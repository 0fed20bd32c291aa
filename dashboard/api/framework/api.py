"""Makes the API object, without operations: ``v1`` adds them. Operations import the API from here."""

from __future__ import annotations

from ninja import NinjaAPI

from .authentication import Bearer, Session
from .schemas import Strict

VERSION = "1"
ABOUT = (
    "Everything the pages can do, for programs: the same rights, rules and audit. Times are milliseconds since the"
    " epoch. Lists come in pages: `next` is the `cursor` of the page after, null on the last. Errors are problem"
    " details (RFC 9457) with a stable `code`. Ids in paths are percent-encoded; a slash in one is written `~2F`,"
    " a leading dot `~2E`, a tilde `~7E`."
)

api = NinjaAPI(
    title="Signalbox",
    version=VERSION,
    description=ABOUT,
    urls_namespace="api",
    openapi_url=None,
    docs_url=None,
    auth=[Bearer(), Session()],
    parser=Strict(),
)
