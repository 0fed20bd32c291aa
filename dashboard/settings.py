"""Settings of Signalbox's own site. They are read from the environment; every value has a default (docs/settings.md).

What the apps read is in the dict ``SIGNALBOX`` (``machines.conf``). A project that mounts the dashboard has settings
of its own and never imports these.
"""

from zoneinfo import available_timezones

from dashboard.serving.middleware.content_security_policy import DIRECTIVES
from dashboard.site import home, sign_in, stores
from dashboard.site.environment import of_process
from machines.conf.table import SETTINGS

_env = of_process()

_home = SETTINGS["HOME"].kind.read("SIGNALBOX_HOME", _env.text("SIGNALBOX_HOME", str(home.find_home())))
DEBUG = _env.flag("DEBUG")
SECRET_KEY = _env.secret("SECRET_KEY") or home.secret_key(_home)
SECRET_KEY_FALLBACKS = _env.secret("SECRET_KEY_FALLBACKS").split()

# Who may call us, and by which name.
ALLOWED_HOSTS = _env.words("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = _env.words("CSRF_TRUSTED_ORIGINS")
BEHIND_TLS = _env.flag("BEHIND_TLS")

# What the apps read.
SIGNALBOX = _env.signalbox(HOME=_home, REDIS_URL=home.redis_url(_home)) | {"AUDIT_ACCOUNTS": True}

# Beside the engine: SQL, cache, sessions.
DATABASES = {"default": stores.database(_env.url("DATABASE_URL", "", stores.DATABASE_SCHEMES), _home)}
CACHE_URL = _env.url("CACHE_URL", "", stores.REDIS_SCHEMES) or SIGNALBOX["REDIS_URL"]
CACHES = stores.caches(CACHE_URL, SIGNALBOX["PREFIX"])
SESSION_ENGINE = stores.session_engine(_env.choice("SIGNALBOX_SESSIONS", "", ["redis", "sql", ""]), CACHE_URL)
SESSION_COOKIE_AGE = SIGNALBOX["SESSION_MAX"]
_LIMITED = SIGNALBOX["SESSION_IDLE"] or SETTINGS["SESSION_MAX"].default != SESSION_COOKIE_AGE
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Sign-in beside passwords: the settings of django-allauth, where SIGNALBOX_SIGN_IN asks for any.
SIGN_IN_APPS: list[str] = []
globals().update(sign_in.read_mail(_env))
globals().update(sign_in.read(_env, f"{SIGNALBOX['LOGIN_ATTEMPTS']}/{SIGNALBOX['LOGIN_WINDOW']}s/key"))

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
    *(["dashboard.demo.examples"] if SIGNALBOX["EXAMPLES"] else []),
    *SIGN_IN_APPS,
]
MIDDLEWARE = [
    "dashboard.serving.middleware.request_ids.RequestIds",
    "dashboard.serving.middleware.probe_hosts.ProbeHosts",
    "django.middleware.security.SecurityMiddleware",
    "dashboard.serving.middleware.content_security_policy.ContentSecurityPolicy",
    "dashboard.serving.cookie_limits.CookieLimits",
    "dashboard.serving.event_loop_views.StaticFiles",
    "dashboard.serving.middleware.request_spans.RequestSpans",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    *(["dashboard.serving.middleware.session_limits.SessionLimits"] if _LIMITED else []),
    "dashboard.shared.times.TimeZoneMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "dashboard.serving.middleware.audit_context.AuditContext",
    *(["allauth.account.middleware.AccountMiddleware"] if SIGN_IN_APPS else []),
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.shared.errors.redis_outage.RedisOutageMiddleware",
    "dashboard.shared.errors.pages.EngineErrorMiddleware",
]
ROOT_URLCONF = "dashboard.site_urls"
ASGI_APPLICATION = "dashboard.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Before those of other apps, such as the admin's, which our own site shows in its colours.
        "DIRS": [home.TEMPLATES / "own_site", home.TEMPLATES],
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

# Rights are held globally or on single machines: machines/people/permissions.py. Nobody has any without an account.
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
USE_I18N = False  # one language: a template need not ask for each number which one it is to be written in
USE_TZ = True
TIME_ZONE = _env.check("TIME_ZONE", "UTC", lambda zone: zone in available_timezones(), "a name such as Europe/Paris")

# Static files come straight from where they are written: no build, no collectstatic.
STATIC_URL = "/static/"
STATICFILES_DIRS = [] if home.IS_INSTALLED else [home.STATIC]  # an installed app brings its own
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False

# Nothing inline, nothing from elsewhere. Scripts and styles carry the answer's nonce; 'self' stays for the modules they
# import and for Django's admin. dashboard/serving/middleware/content_security_policy.py sets the other headers.
SECURE_CSP = DIRECTIVES | {"upgrade-insecure-requests": BEHIND_TLS}
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
            "()": "dashboard.site.log_format.Line",
            "format": "{asctime} {levelname} {name}{asked}: {message}",
            "style": "{",
        }
    },
    "filters": {
        "refusals": {"()": "dashboard.site.log_format.Refusals"},
        "asked": {"()": "dashboard.site.log_format.RequestFilter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["asked"]}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {name: {"level": LOG_LEVEL} for name in ("machines", "dashboard", "signalbox")}
    | {name: {"level": "WARNING"} for name in ("httpx", "httpcore")}  # they log whole addresses of webhooks
    | {"django.request": {"filters": ["refusals"]}},
}
