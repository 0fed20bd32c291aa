"""Settings of a shop, as ``django-admin startproject`` writes them, with what Signalbox needs marked.

Nothing here comes from Signalbox's own settings. The environment says where the test keeps its data.
"""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
REPOSITORY = BASE_DIR.parents[2]
SECRET_KEY = "a key of the shop's tests, which is no secret at all"
DEBUG = bool(os.environ.get("SHOP_DEBUG"))
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "guardian",  # Signalbox
    "machines",  # Signalbox
    "dashboard",  # Signalbox
    "shop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "shop.urls"
WSGI_APPLICATION = "shop.wsgi.application"
ASGI_APPLICATION = "shop.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # The second is inside of the package where Signalbox is installed as a wheel.
        "DIRS": [BASE_DIR / "templates", REPOSITORY / "templates"],
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
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["SHOP_DATABASE"]}}
DATABASES["default"]["OPTIONS"] = {"timeout": 20, "transaction_mode": "IMMEDIATE"}
DATABASES["default"]["OPTIONS"]["init_command"] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"  # Signalbox
DATABASES["default"]["ATOMIC_REQUESTS"] = True
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
SESSION_ENGINE = "django.contrib.sessions.backends.db"
AUTH_USER_MODEL = "shop.Customer"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",  # Signalbox
]
ANONYMOUS_USER_NAME = None  # Signalbox: guardian makes no account for strangers
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/"

LANGUAGE_CODE = "de"
TIME_ZONE = "Europe/Berlin"
USE_I18N = True
USE_TZ = True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static", REPOSITORY / "static"]
WHITENOISE_USE_FINDERS = True
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"

SIGNALBOX = {
    "REDIS_URL": os.environ.get("SHOP_REDIS", "redis://127.0.0.1:6379/0"),
    "PREFIX": os.environ.get("SHOP_PREFIX", "shop:"),
}
