"""What each kind of error is over HTTP: one table for pages and API alike. The site's own codes are

SB700 the request does not make sense     SB701 a field of the form cannot be taken as it is
SB703 Django forbids this                 SB704 nothing lives at this address
SB705 a job is not where it was seen      SB708 the form is too old or not ours
SB709 too many attempts to log in         SB710 the site failed
SB711 too many of the same in a short time  SB712 too many requests of one caller at a time
SB713 a request that is too large         SB714 the site has too much to do
SB715 the cookies are too large           SB716 work that takes too long
SB717 too many guesses at a hidden value  SB718 an identity provider confirmed nobody
SB719 an identity provider does not answer
"""

from machines.approvals.errors import NotApprover, NotOpen, OwnRequest
from machines.catalog import errors as of_catalog
from machines.catalog.offload import AtOnce, NoHelper, Overrun
from machines.catalog.publishing import Diverged
from machines.conf.encryption.ciphers import SecretUnreadable
from machines.engine import errors
from machines.insight.errors import InsightOff, StoreUnavailable
from machines.instances.bulks.errors import NotNow
from machines.jobs.errors import NotMoved
from machines.patterns.base import PatternError
from machines.people import errors as people
from machines.people.mirrors import MethodFailed, MethodRefused
from machines.schedules import AuthorLost, DeclaredSchedule

BAD_REQUEST, MISTAKE, FORBIDDEN, NO_PAGE, STALE_FORM, FAULT = "SB700", "SB701", "SB703", "SB704", "SB708", "SB710"
NOT_MOVED, LOGIN_THROTTLED, OVER_PACE = "SB705", "SB709", "SB711"
CROWDED, TOO_LARGE, BUSY, TOO_LONG = "SB712", "SB713", "SB714", "SB716"
COOKIES_TOO_LARGE, GUESSED = "SB715", people.GuessedTooOften.code
SIGN_IN_FAILED, PROVIDER_AWAY = "SB718", "SB719"

ANSWERS: dict[type[Exception], tuple[int | None, str]] = {
    errors.LookupFailed: (404, "Not found"),
    errors.BadInput: (400, "Invalid input"),
    MethodRefused: (422, "The method refuses this row"),
    MethodFailed: (422, "The method failed"),
    errors.DefinitionError: (422, "The definition has errors"),
    errors.PlanError: (422, "The plan has errors"),
    errors.Refused: (422, "Refused"),
    errors.NotAllowed: (403, "Not allowed"),
    errors.NeedsApproval: (409, "Approval needed"),
    people.Forbidden: (403, "Permission denied"),
    OwnRequest: (403, "You cannot decide your own request"),
    people.SignInNeeded: (403, "Log in again"),
    NotApprover: (403, "You are not in the group that decides"),
    people.TokenNeeded: (403, "Token required"),
    people.TooFast: (429, "Rate limit exceeded"),
    AtOnce: (429, "Too many concurrent requests"),
    Overrun: (422, "Timeout"),
    NoHelper: (503, "Server busy"),
    of_catalog.ApprovalNeeded: (409, "Approval needed"),
    NotOpen: (409, "Request already decided"),
    NotMoved: (409, "Job has moved"),
    of_catalog.DraftConflict: (409, "Conflict: another version is current"),
    of_catalog.DraftClosed: (409, "The draft is closed"),
    of_catalog.DraftChanged: (409, "Conflict: the draft changed"),
    of_catalog.SecondNeeded: (409, "Approval needed"),
    of_catalog.PlanInUse: (409, "The plan is in use"),
    of_catalog.NotMigrated: (409, "Nothing to move back"),
    NotNow: (409, "Not possible in this state"),
    Diverged: (409, "Database and Redis differ"),
    AuthorLost: (409, "The author lost the right"),
    DeclaredSchedule: (409, "The schedule is declared elsewhere"),
    errors.InstanceExists: (409, "Instance already exists"),
    errors.Conflict: (409, "Conflict: the instance changed"),
    errors.VersionRefused: (409, "Conflict: the versions do not allow it"),
    errors.Miscounted: (409, "Number of jobs has changed"),
    errors.JobHandled: (409, "The instance has moved on"),
    errors.Suspended: (409, "Instance suspended"),
    errors.LeaseLost: (409, "Lease lost"),
    PatternError: (409, "Conflict"),
    SecretUnreadable: (409, "The key is gone"),
    errors.EncryptionFailed: (409, "Not encrypted or decrypted"),
    InsightOff: (409, "Insight is off"),
    StoreUnavailable: (503, "Facts of insight unavailable"),
    errors.EngineUnavailable: (503, "Redis unavailable"),
    errors.EngineFault: (500, "Unexpected engine response"),
    errors.LibraryNotLoaded: (503, "Functions library not loaded"),
    errors.UnknownMachine: (None, "Machine not found"),
    errors.UnknownInstance: (None, "Instance not found"),
    errors.BadPayload: (None, "Invalid payload or data"),
    errors.UnknownEvent: (None, "Unknown event"),
    errors.TooMuchWork: (None, "Step too large"),
    errors.NotPermitted: (None, "Redis permission missing"),
}
"""Error -> the status of its answer, None for that of its base class; and its title."""


def status_of(kind: type[BaseException]) -> int:
    return next((status for status, _ in _list_answers(kind) if status), 500)


def title_of(kind: type[BaseException]) -> str:
    return next((title for _, title in _list_answers(kind) if title), "Request failed")


def _list_answers(kind: type[BaseException]) -> list[tuple[int | None, str]]:
    """List the answers of a class and of its base classes, the closest first."""
    return [ANSWERS[one] for one in kind.__mro__ if one in ANSWERS]
