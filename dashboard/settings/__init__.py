"""Django settings. They are read from the environment; every value has a default (docs/settings.md)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from zoneinfo import available_timezones

from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from machines.archive import names as archives
from machines.engine import rates
from machines.engine.limits import LONGEST_WAIT, MAX_PARTITIONS, MOST_REPLICAS
from machines.retention import policy

from . import home, stores
from .environment import Environment

BASE_DIR = Path(__file__).resolve().parents[2]
ENVIRONMENT = Environment(os.environ)
_env = ENVIRONMENT

SIGNALBOX_HOME = Path(_env.text("SIGNALBOX_HOME", str(BASE_DIR / ".signalbox"))).expanduser().absolute()
DEBUG = _env.flag("DEBUG")
SECRET_KEY = _env.secret("SECRET_KEY") or home.secret_key(SIGNALBOX_HOME)

# Who may call us, and by which name.
ALLOWED_HOSTS = _env.words("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = _env.words("CSRF_TRUSTED_ORIGINS")
BEHIND_TLS = _env.flag("BEHIND_TLS")

# Requests that one web process works on at a time; one address gets half of that, one caller a quarter.
SIGNALBOX_LEASE_HELPER = _env.integer("SIGNALBOX_LEASE_HELPER", 600, low=0, high=86400)
SIGNALBOX_THREADS = _env.integer("SIGNALBOX_THREADS", 16, low=4, high=256)

# Open pages of one person that one web process keeps up to date by a socket; of one address ten times as many.
SIGNALBOX_SOCKETS = _env.integer("SIGNALBOX_SOCKETS", 40, low=1, high=100_000)

# Attempts to log in: so many for one name in so many seconds, and five times as many from one address.
SIGNALBOX_LOGIN_ATTEMPTS = _env.integer("SIGNALBOX_LOGIN_ATTEMPTS", 10, low=1, high=10_000)
SIGNALBOX_LOGIN_WINDOW = _env.integer("SIGNALBOX_LOGIN_WINDOW", 300, low=1, high=86_400)

# Hosts that webhooks may lead to although they are none of the public internet.
SIGNALBOX_WEBHOOK_HOSTS = _env.words("SIGNALBOX_WEBHOOK_HOSTS")
# Ports that webhooks may lead to beside 80 and 443.
SIGNALBOX_WEBHOOK_PORTS = _env.integers("SIGNALBOX_WEBHOOK_PORTS", low=1, high=65_535)

# The engine.
REDIS_URL = _env.url("REDIS_URL", home.redis_url(SIGNALBOX_HOME), stores.REDIS_SCHEMES)
SIGNALBOX_PREFIX = _env.checked(
    "SIGNALBOX_PREFIX",
    "sb:",
    lambda prefix: re.fullmatch(r"[A-Za-z0-9_.-]{1,40}:", prefix) is not None,
    "1 to 40 letters, digits, '_', '.' or '-', and a ':' at the end",
)
# Partitions of a machine that is published for the first time and does not say; 0: by the number of primaries.
SIGNALBOX_PARTITIONS = _env.integer("SIGNALBOX_PARTITIONS", 0, low=1, high=MAX_PARTITIONS)
# Replicas that a change of an instance waits for, and for how many ms.
SIGNALBOX_REPLICAS = _env.integer("SIGNALBOX_REPLICAS", 0, low=0, high=MOST_REPLICAS)
SIGNALBOX_REPLICA_TIMEOUT = _env.integer("SIGNALBOX_REPLICA_TIMEOUT", 1000, low=1, high=LONGEST_WAIT)
SIGNALBOX_EXAMPLES = _env.flag("SIGNALBOX_EXAMPLES", True)
SIGNALBOX_DEMO_PACE = _env.integer("SIGNALBOX_DEMO_PACE", 0, low=0, high=60_000)  # ms an example's handler takes


def _rate(name: str, default: str) -> str:
    return _env.checked(
        name,
        default,
        lambda rate: rate == "off" or rates.parse_rate(rate) is not None,
        f'a rate such as "{default}", or off',
    )


# Limits over all processes. How often one person may fire, repair and create on pages and in the admin (one address
# five times as often); how often one token or user may call the API (one address ten times as often); how many
# deliveries one receiver of webhooks gets.
SIGNALBOX_FIRE_RATE = _rate("SIGNALBOX_FIRE_RATE", "120/m")
SIGNALBOX_API_RATE = _rate("SIGNALBOX_API_RATE", "1200/m")
SIGNALBOX_WEBHOOK_RATE = _rate("SIGNALBOX_WEBHOOK_RATE", "600/m")

# What is kept: bounds for all machines and for tables of the database, and where finished instances go before they go.
SIGNALBOX_RETAIN = _env.checked("SIGNALBOX_RETAIN", "", policy.is_policy, policy.WANTED)
SIGNALBOX_ARCHIVE = _env.checked("SIGNALBOX_ARCHIVE", "sql", archives.is_archive, archives.WANTED)

# Prometheus. A token alone opens it to every client that sends it; "login" takes one, too, where there is one.
SIGNALBOX_METRICS = _env.choice("SIGNALBOX_METRICS", "login", ["off", "login", "token", "open"])
SIGNALBOX_METRICS_TOKEN = _env.secret("SIGNALBOX_METRICS_TOKEN")
if SIGNALBOX_METRICS == "token" and not SIGNALBOX_METRICS_TOKEN:
    raise ImproperlyConfigured("SIGNALBOX_METRICS is token, so SIGNALBOX_METRICS_TOKEN has to hold one")
if 0 < len(SIGNALBOX_METRICS_TOKEN) < 16:
    raise ImproperlyConfigured("SIGNALBOX_METRICS_TOKEN is too short to be a secret; use 16 characters or more")

# Beside the engine: SQL, cache, sessions.
DATABASES = {"default": stores.database(_env.url("DATABASE_URL", "", stores.DATABASE_SCHEMES), SIGNALBOX_HOME)}
CACHE_URL = _env.url("CACHE_URL", "", stores.REDIS_SCHEMES) or REDIS_URL
CACHES = stores.caches(CACHE_URL, SIGNALBOX_PREFIX)
SESSION_ENGINE = stores.session_engine(_env.choice("SIGNALBOX_SESSIONS", "", ["redis", "sql", ""]), CACHE_URL)
SESSION_COOKIE_AGE = 14 * 86400  # seconds
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "guardian",
    "machines",
    "dashboard",
    *(["dashboard.examples"] if SIGNALBOX_EXAMPLES else []),
]
MIDDLEWARE = [
    "dashboard.middleware.request_ids.RequestIds",
    "dashboard.middleware.probe_hosts.ProbeHosts",
    "django.middleware.security.SecurityMiddleware",
    "dashboard.middleware.content_security_policy.ContentSecurityPolicy",
    "dashboard.serving.cookie_limits.CookieLimits",
    "dashboard.serving.static_files.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dashboard.shared.time_zones.TimeZoneMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "dashboard.middleware.audit_context.AuditContext",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.shared.errors.redis_outage.RedisOutageMiddleware",
    "dashboard.shared.errors.pages.EngineErrorMiddleware",
]
ROOT_URLCONF = "dashboard.urls"
ASGI_APPLICATION = "dashboard.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Rights are held globally or on single machines: machines/access/permissions.py. Nobody has any without an account.
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None

PASSWORD_HASHERS = [
    "dashboard.serving.password_hashing.BoundedPBKDF2",
    *(
        f"django.contrib.auth.hashers.{name}PasswordHasher"
        for name in ("PBKDF2SHA1", "Argon2", "BCryptSHA256", "Scrypt")
    ),
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/accounts/login/"
CSRF_FAILURE_VIEW = "dashboard.shared.errors.pages.stale_form"

LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = _env.checked("TIME_ZONE", "UTC", lambda zone: zone in available_timezones(), "a name such as Europe/Paris")

# Static files come straight from where they are written: no build, no collectstatic.
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"] if (BASE_DIR / "static").is_dir() else []
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False

# Nothing inline, nothing from elsewhere. Scripts and styles carry the answer's nonce; 'self' stays for the modules they
# import and for Django's admin. What else an answer says stands in dashboard/middleware/content_security_policy.py.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "script-src-attr": [NONE],
        "style-src": [SELF, NONCE],
        "style-src-attr": [NONE],
        "object-src": [NONE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "require-trusted-types-for": ["'script'"],
        "trusted-types": ["signalbox"],
        "upgrade-insecure-requests": BEHIND_TLS,
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"  # ids and filters stand in addresses
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_TLS
if BEHIND_TLS:  # browsers then take the cookie from this very host over TLS, and from nobody else
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS else None
SECURE_HSTS_SECONDS = 365 * 86400 if BEHIND_TLS else 0

LOG_LEVEL = _env.choice("LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "dashboard.settings.log_format.Line",
            "format": "{asctime} {levelname} {name}{asked}: {message}",
            "style": "{",
        }
    },
    "filters": {
        "refusals": {"()": "dashboard.settings.log_format.Refusals"},
        "asked": {"()": "dashboard.settings.log_format.Asked"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["asked"]}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {name: {"level": LOG_LEVEL} for name in ("machines", "dashboard")}
    | {name: {"level": "WARNING"} for name in ("httpx", "httpcore")}  # they log whole addresses of webhooks
    | {"django.request": {"filters": ["refusals"]}},
}
