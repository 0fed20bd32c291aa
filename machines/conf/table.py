"""Every setting of the apps, once: its key in the dict ``SIGNALBOX``, its variable, its kind and its default; and
``conf``, which reads the dict in Django's settings: names and values checked, defaults filled in.

``docs/settings.md`` says what each does; a test holds its rows to this table.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from machines.engine.connection.redis_url import SCHEMES
from machines.engine.definitions.reading.machine_settings import VERSIONING
from machines.engine.limits import LONGEST_WAIT, MAX_PARTITIONS, MOST_REPLICAS

from . import retention_policy
from .kinds import (
    Approvers,
    CheckedText,
    Choice,
    Drifts,
    Environment,
    FactsPlace,
    Flag,
    Folder,
    Integer,
    Integers,
    Kind,
    Networks,
    Numbers,
    Rate,
    Receivers,
    Records,
    Secret,
    Unfit,
    Url,
    WordLists,
    Words,
    WordsByMachine,
)

ROUTE = ("secret", "severity", "machines", "kinds", "hours", "zone", "after", "link")
"""What a route of alarms may say beside its name and address: see ``machines.alarms.routes``."""
DANGEROUS = (
    "force", "edit", "reset", "retry", "skip", "cancel", "delete", "publish", "rollout.set", "version.pin",
    "version.withdraw", "version.policy", "machine.import", "machine.repartition", "machine.erase", "machine.migrate",
    "queue.purge", "bulk.start", "approval.approve", "token.make", "webhook.make", "webhook.rotate", "route.make",
    "route.rotate",
)  # fmt: skip
"""Actions of the audit that destroy, go around the definition, or open a way in: a fresh sign-in may be asked for."""
LONGEST_SESSION = 14 * 86_400
REDIS = "redis://127.0.0.1:6379/0"


def is_report_address(text: str) -> bool:
    """Tell whether a text may stand in headers as an address; "" is none."""
    return re.fullmatch(r"""(https?://[!#-&(-+\--:<-\[\]-~]+)?""", text) is not None


@dataclass(frozen=True, slots=True)
class Setting:
    """``default``: the value of a missing key. It need not fit the kind: 0 partitions mean that the engine decides.

    ``variable``: the name in the environment of Signalbox's own site; empty: there is none.
    ``secret``: a variable of that name with ``_FILE`` may name a file with the value.
    """

    name: str
    kind: Kind
    default: Any
    variable: str
    secret: bool = False

    def read(self, label: str, value: Any) -> Any:
        """Return a value of Python, or raise ``Unfit``."""
        return value if type(value) is type(self.default) and value == self.default else self.kind.read(label, value)


def _setting(name: str, kind: Kind, default: Any, variable: str | None = None, *, secret: bool = False) -> Setting:
    return Setting(name, kind, default, f"SIGNALBOX_{name}" if variable is None else variable, secret)


def is_prefix(text: str) -> bool:
    """Tell whether keys may begin with a text."""
    return re.fullmatch(r"[A-Za-z0-9_.-]{1,40}:", text) is not None


def is_dotted(text: str) -> bool:
    return re.fullmatch(r"([A-Za-z_]\w*\.)+[A-Za-z_]\w*", text) is not None


TABLE = (
    # The engine.
    _setting("REDIS_URL", Url(SCHEMES), REDIS, "REDIS_URL", secret=True),
    _setting("PREFIX", CheckedText(is_prefix, "1 to 40 letters, digits, '_', '.' or '-', and a ':' at the end"), "sb:"),
    # In Django's tests: keys of the test process alone, or those of PREFIX.
    _setting("TEST_PREFIX", Choice(("own", "shared")), "own", ""),
    _setting("PARTITIONS", Integer(1, MAX_PARTITIONS), 0),
    _setting("REPLICAS", Integer(0, MOST_REPLICAS), 0),
    _setting("REPLICA_TIMEOUT", Integer(1, LONGEST_WAIT), 1000),
    # Seconds for which a call of the engine is retried, if that is safe, while Redis does not answer.
    _setting("RETRY_FOR", Integer(0, 60), 5),
    # The codec of encrypted fields: the dotted path of a class or an object.
    _setting("CODEC", CheckedText(is_dotted, "the dotted path of a codec"), ""),
    # Limits over all processes.
    _setting("FIRE_RATE", Rate("120/m"), "120/m"),
    _setting("GUESS_RATE", Rate("10/h"), "10/h"),
    _setting("API_RATE", Rate("1200/m"), "1200/m"),
    _setting("WEBHOOK_RATE", Rate("600/m"), "600/m"),
    _setting("LOGIN_ATTEMPTS", Integer(1, 10_000), 10),
    _setting("LOGIN_WINDOW", Integer(1, 86_400), 300),
    # Groups of an identity provider, each with the groups of Django that it gives, and where the provider names them.
    _setting("SIGN_IN_GROUPS", WordLists(), {}),
    _setting("SIGN_IN_CLAIM", Kind(), "groups"),
    # Seconds after which a session that nobody uses ends (0: none), and after which any ends.
    _setting("SESSION_IDLE", Integer(0, 31_536_000), 0),
    _setting("SESSION_MAX", Integer(300, 31_536_000), LONGEST_SESSION),
    # Actions that need a login within the last minutes.
    _setting("FRESH_SIGN_IN", Words(DANGEROUS), []),
    _setting("FRESH_MINUTES", Integer(1, 1440), 10),
    # Where the button to log out leads in a project: a path, or the name of an address.
    _setting("LOGOUT_URL", Kind(), "", ""),
    # Proxies whose X-Forwarded-For says where a request comes from.
    _setting("TRUSTED_PROXIES", Networks(), []),
    # Limits of one process.
    _setting("SOCKETS", Integer(1, 100_000), 40),
    _setting("THREADS", Integer(4, 256), 16),
    _setting("LIVE", Numbers(), {}, ""),
    _setting("LEASE_HELPER", Integer(0, 86_400), 600),
    # KiB of what a handler logs and prints that are kept with its job.
    _setting("JOB_LOGS", Integer(0, 1024), 64),
    # Webhooks.
    _setting("WEBHOOK_HOSTS", Words(), []),
    _setting("WEBHOOK_PORTS", Integers(1, 65_535), []),
    # Routes of alarms.
    _setting("ALARM_ROUTES", Records(("name", "url"), ROUTE), [], ""),
    # The address to which browsers report what the Content-Security-Policy blocked.
    _setting(
        "CSP_REPORTS", CheckedText(is_report_address, "an http or https address without spaces, quotes, commas, ;"), ""
    ),
    # What is kept.
    _setting("RETAIN", CheckedText(retention_policy.is_policy, retention_policy.WANTED), ""),
    _setting("ARCHIVE", CheckedText(retention_policy.is_archive, retention_policy.ARCHIVES), "sql"),
    # The folder of insight's facts, shared by workers and web processes, or their database; None: insight is off.
    _setting("INSIGHT", FactsPlace(), None),
    _setting("INSIGHT_ALARMS", Drifts(), []),
    _setting("TASK_RESULTS", Integer(1, 366 * 86_400), 86_400),
    # Seconds between two comparisons of attached tables with their mirrors; 0: only when a person asks.
    _setting("RECONCILE", Integer(0, 30 * 86_400), 3_600),
    # The error inbox.
    _setting("ERROR_DIGEST", Choice(("off", "daily", "weekly")), "off"),
    _setting("ERROR_DIGEST_TO", Words(), []),
    # Prometheus.
    _setting("METRICS", Choice(("off", "login", "token", "open")), "login"),
    _setting("METRICS_TOKEN", Secret(least=16), "", secret=True),
    # Actions that need a second person on every machine, named as in `approval` of a definition.
    _setting("APPROVAL", Words(VERSIONING), []),
    # The same for all machines, or for some by name.
    _setting("VERSION_POLICY", WordsByMachine(VERSIONING), {}),
    # Who approves what a second person has to approve, how many of them, and until when.
    _setting("APPROVERS", Approvers(), {}),
    # Whether changes of all users and groups are audited, not only those of rights and tokens.
    _setting("AUDIT_ACCOUNTS", Flag(), False, ""),
    # A file to which each new head of the audit's hash chain is appended.
    _setting("AUDIT_HEADS", Kind(), ""),
    # Where each entry is sent, and the secret that signs heads for a web address.
    _setting("AUDIT_STREAM", Receivers(), []),
    _setting("AUDIT_STREAM_SECRET", Secret(least=24), "", secret=True),
    # The name and colour of this installation, for every page and message.
    _setting("ENVIRONMENT", Environment(), {}),
    # The site of docs (make docs) of this version, which the search then finds headings in.
    _setting("DOCS_URL", Url(("https", "http")), ""),
    # Signalbox's own site and its demo.
    _setting("HOME", Folder(), ".signalbox"),
    _setting("EXAMPLES", Flag(), True),
    _setting("DEMO_PACE", Integer(0, 60_000), 0),
)

SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in TABLE}


def check_together(values: Mapping[str, Any], label: Callable[[str], str]) -> None:
    """Raise ``Unfit`` where two values contradict each other; ``label`` gives a name as its owner wrote it."""
    if values["METRICS"] == "token" and not values["METRICS_TOKEN"]:
        raise Unfit(f"{label('METRICS')} is token, so {label('METRICS_TOKEN')} has to hold one")
    if any(one.startswith("https:") for one in values["AUDIT_STREAM"]) and not values["AUDIT_STREAM_SECRET"]:
        raise Unfit(f"{label('AUDIT_STREAM')} has a web address, so {label('AUDIT_STREAM_SECRET')} has to hold one")


NAME = "SIGNALBOX"


class Conf:
    """The settings of the apps as attributes: ``conf.REDIS_URL``.

    A read raises ImproperlyConfigured with every problem of the dict, also of keys that were not asked for: a misspelt
    ``PREFIX`` must not send keys to the default one. The dict is read once; to change a key, assign another dict.
    """

    def __init__(self) -> None:
        self._held: tuple[Any, dict[str, Any]] = (object(), {})

    def __getattr__(self, name: str) -> Any:
        if name not in SETTINGS:
            raise AttributeError(f"no setting {name}; {suggest(name)}")
        given = _read_given()
        held, values = self._held
        if given is not held:
            values, problems = resolve({} if given is None else given)
            if problems:
                from django.core.exceptions import ImproperlyConfigured

                raise ImproperlyConfigured("\n".join(problems))
            self._held = (given, values)
        return values[name]


conf = Conf()


def mark_environment(text: str) -> str:
    """Return a title or subject with the name of the environment in front: ``[production] Over: sla of desk``."""
    return f"[{conf.ENVIRONMENT['name']}] {text}" if conf.ENVIRONMENT else text


def _read_given() -> Any:
    """Return the dict of Django's settings; None if there is none, or if Django is not installed."""
    try:
        from django.conf import settings
    except ModuleNotFoundError:
        return None
    return getattr(settings, NAME, None)


def resolve(given: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the value of each setting, and a sentence for each name and value that does not fit."""
    if not isinstance(given, Mapping):
        return {}, [f"{NAME} in Django's settings is of the type {type(given).__name__}; it must be a dict"]
    problems = [
        f"{label(name)} in Django's settings: there is no such setting; {suggest(str(name))}"
        for name in given
        if name not in SETTINGS
    ]
    values = {}
    for name, setting in SETTINGS.items():
        try:
            values[name] = setting.read(label(name), given[name]) if name in given else setting.default
        except Unfit as error:
            problems.append(str(error))
    values["HOME"] = SETTINGS["HOME"].kind.read(label("HOME"), values.get("HOME", SETTINGS["HOME"].default))
    if not problems:
        try:
            check_together(values, label)
        except Unfit as error:
            problems.append(str(error))
    return values, problems


def find_problems() -> list[str]:
    """Return a sentence for each name and value in Django's settings that does not fit."""
    given = _read_given()
    return resolve({} if given is None else given)[1]


def label(name: Any) -> str:
    """Return the name of a key as its owner wrote it."""
    return f'{NAME}["{name}"]'


def suggest(name: str) -> str:
    """Return the setting that a misspelt name was probably meant to be, or all settings."""
    plain = name.removeprefix("SIGNALBOX_")
    close = [plain] if plain in SETTINGS else difflib.get_close_matches(plain.upper(), SETTINGS, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(SETTINGS)}"
