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

from __future__ import annotations

from typing import Any

from machines.bulks.errors import NotNow
from machines.catalog.mirrors import MethodFailed, MethodRefused
from machines.catalog.offload import AtOnce, NoHelper, Overrun
from machines.catalog.publishing import Diverged
from machines.encryption.ciphers import SecretUnreadable
from machines.engine import errors
from machines.insight.errors import InsightOff, StoreUnavailable
from machines.patterns.base import PatternError
from machines.people.errors import (
    ApprovalNeeded,
    DraftChanged,
    DraftClosed,
    DraftConflict,
    Forbidden,
    GuessedTooOften,
    NotApprover,
    NotMigrated,
    NotMoved,
    NotOpen,
    OwnRequest,
    PlanInUse,
    SecondNeeded,
    SignInNeeded,
    TokenNeeded,
    TooFast,
)
from machines.schedules import AuthorLost, DeclaredSchedule

BAD_REQUEST, MISTAKE, FORBIDDEN, NO_PAGE, STALE_FORM, FAULT = "SB700", "SB701", "SB703", "SB704", "SB708", "SB710"
NOT_MOVED, LOGIN_THROTTLED, OVER_PACE = "SB705", "SB709", "SB711"
CROWDED, TOO_LARGE, BUSY, TOO_LONG = "SB712", "SB713", "SB714", "SB716"
COOKIES_TOO_LARGE, GUESSED = "SB715", GuessedTooOften.code
SIGN_IN_FAILED, PROVIDER_AWAY = "SB718", "SB719"

STATUS: dict[type[Exception], int] = {
    errors.LookupFailed: 404,
    errors.BadInput: 400,
    MethodRefused: 422,
    MethodFailed: 422,
    errors.DefinitionError: 422,
    errors.PlanError: 422,
    errors.Refused: 422,
    errors.NotAllowed: 403,
    errors.NeedsApproval: 409,
    Forbidden: 403,
    OwnRequest: 403,
    SignInNeeded: 403,
    NotApprover: 403,
    TokenNeeded: 403,
    TooFast: 429,
    AtOnce: 429,
    Overrun: 422,
    NoHelper: 503,
    ApprovalNeeded: 409,
    NotOpen: 409,
    NotMoved: 409,
    DraftConflict: 409,
    DraftClosed: 409,
    DraftChanged: 409,
    SecondNeeded: 409,
    PlanInUse: 409,
    NotMigrated: 409,
    NotNow: 409,
    Diverged: 409,
    AuthorLost: 409,
    DeclaredSchedule: 409,
    errors.InstanceExists: 409,
    errors.Conflict: 409,
    errors.VersionRefused: 409,
    errors.Miscounted: 409,
    errors.JobHandled: 409,
    errors.Suspended: 409,
    errors.LeaseLost: 409,
    PatternError: 409,
    SecretUnreadable: 409,
    errors.EncryptionFailed: 409,
    InsightOff: 503,
    StoreUnavailable: 503,
    errors.EngineUnavailable: 503,
    errors.EngineFault: 500,
    errors.LibraryNotLoaded: 503,
}

TITLES: dict[type[Exception], str] = {
    errors.LookupFailed: "Not found",
    errors.UnknownMachine: "Machine not found",
    errors.UnknownInstance: "Instance not found",
    errors.BadInput: "Invalid input",
    MethodRefused: "The method refuses this row",
    MethodFailed: "The method failed",
    errors.BadPayload: "Invalid payload or data",
    errors.DefinitionError: "The definition has errors",
    errors.PlanError: "The plan has errors",
    errors.Refused: "Refused",
    errors.UnknownEvent: "Unknown event",
    errors.TooMuchWork: "Step too large",
    errors.Suspended: "Instance suspended",
    errors.NotAllowed: "Not allowed",
    errors.NeedsApproval: "Approval needed",
    Forbidden: "Permission denied",
    OwnRequest: "You cannot decide your own request",
    SignInNeeded: "Log in again",
    NotApprover: "You are not in the group that decides",
    TokenNeeded: "Token required",
    TooFast: "Rate limit exceeded",
    AtOnce: "Too many concurrent requests",
    Overrun: "Timeout",
    NoHelper: "Server busy",
    ApprovalNeeded: "Approval needed",
    NotOpen: "Request already decided",
    NotMoved: "Job has moved",
    DraftConflict: "Conflict: another version is current",
    DraftClosed: "The draft is closed",
    DraftChanged: "Conflict: the draft changed",
    SecondNeeded: "Approval needed",
    PlanInUse: "The plan is in use",
    NotMigrated: "Nothing to move back",
    NotNow: "Not possible in this state",
    Diverged: "Database and Redis differ",
    AuthorLost: "The author lost the right",
    DeclaredSchedule: "The schedule is declared elsewhere",
    errors.Conflict: "Conflict: the instance changed",
    errors.VersionRefused: "Conflict: the versions do not allow it",
    errors.JobHandled: "The instance has moved on",
    errors.Miscounted: "Number of jobs has changed",
    errors.InstanceExists: "Instance already exists",
    errors.LeaseLost: "Lease lost",
    PatternError: "Conflict",
    SecretUnreadable: "The key is gone",
    errors.EncryptionFailed: "Not encrypted or decrypted",
    InsightOff: "Insight is off",
    StoreUnavailable: "Facts of insight unavailable",
    errors.EngineUnavailable: "Redis unavailable",
    errors.EngineFault: "Unexpected engine response",
    errors.NotPermitted: "Redis permission missing",
    errors.LibraryNotLoaded: "Functions library not loaded",
}


def status_of(kind: type[BaseException]) -> int:
    return int(_find_nearest(STATUS, kind) or 500)


def title_of(kind: type[BaseException]) -> str:
    return str(_find_nearest(TITLES, kind) or "Request failed")


def _find_nearest(table: dict[type[Exception], Any], kind: type[BaseException]) -> Any:
    """Return the entry of the class, or of its closest base class."""
    return next((table[one] for one in kind.__mro__ if one in table), None)
