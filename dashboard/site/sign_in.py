"""Makes the settings of django-allauth from the variables of Signalbox's own site.

``SIGNALBOX_SIGN_IN`` lists what is offered beside passwords. Without it nothing of the library is imported, and the
login is the product's own (``dashboard.account.login``).
"""

from typing import Any
from urllib.parse import unquote, urlsplit

import django
from django.core.exceptions import ImproperlyConfigured

from dashboard.site.environment import Environment
from machines.conf import extras

WAYS = ("oidc", "saml", "totp", "passkeys")
PROVIDERS = {"oidc": "openid_connect", "saml": "saml"}
CLASSES = {"oidc": {"provider_class": "dashboard.account.sign_in.openid_connect.Provider"}}
FACTORS = {"totp": "totp", "passkeys": "webauthn"}
"""What a person adds to the own account -> its name in the library; ``PROVIDERS`` likewise."""
MAIL_SCHEMES = ("smtp", "smtp+tls", "smtps")


def read_mail(env: Environment) -> dict[str, Any]:
    """Read where mails go: ``smtp+tls://user:password@mail.example.com:587``. Nowhere by default. ``SIGN_IN_MAILS``:
    whether there is a server."""
    url, sender = env.url("EMAIL_URL", "", MAIL_SCHEMES), env.text("DEFAULT_FROM_EMAIL", "signalbox@localhost")
    parts = urlsplit(url)
    backend = f"django.core.mail.backends.{'smtp' if url else 'dummy'}.EmailBackend"
    options = {
        "host": parts.hostname or "",
        "port": parts.port or {"smtps": 465, "smtp+tls": 587}.get(parts.scheme, 25),
        "username": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "use_tls": parts.scheme == "smtp+tls",
        "use_ssl": parts.scheme == "smtps",
        "timeout": 10,
    }
    ours = {"DEFAULT_FROM_EMAIL": sender, "SIGN_IN_MAILS": bool(url)}
    if django.VERSION >= (6, 1):
        return ours | {"MAILERS": {"default": {"BACKEND": backend} | ({"OPTIONS": options} if url else {})}}
    names = {"username": "HOST_USER", "password": "HOST_PASSWORD"}
    old = {f"EMAIL_{names.get(name, name.upper())}": value for name, value in options.items()}
    return ours | {"EMAIL_BACKEND": backend} | old


def read(env: Environment, attempts: str) -> dict[str, Any]:
    """Read what is offered and return the settings for it, empty when that is nothing. ``attempts``: the rate of
    logins for one name, for the steps that the library counts."""
    ways = env.words("SIGNALBOX_SIGN_IN")
    apps = {"oidc": _read_oidc(env), "saml": _read_saml(env)}
    if unknown := [way for way in ways if way not in WAYS]:
        raise ImproperlyConfigured(f"SIGNALBOX_SIGN_IN holds {unknown[0]!r}, which is not one of {', '.join(WAYS)}")
    if not ways:
        return {}
    try:
        extras.require("SIGNALBOX_SIGN_IN", *(["saml"] if "saml" in ways else ["sso"]))
    except extras.MissingExtra as error:
        raise ImproperlyConfigured(str(error)) from None
    factors = _make_factors(ways, tls=env.flag("BEHIND_TLS"))
    return _list_apps(ways) | _make_account(attempts) | _make_providers(ways, apps) | factors


def _read_oidc(env: Environment) -> dict[str, Any]:
    return {
        "provider_id": "sso",
        "name": env.text("SIGNALBOX_OIDC_NAME", "single sign-on"),
        "client_id": env.text("SIGNALBOX_OIDC_CLIENT"),
        "secret": env.secret("SIGNALBOX_OIDC_SECRET"),
        "settings": {"server_url": env.url("SIGNALBOX_OIDC_URL", "", ["https", "http"]), "oauth_pkce_enabled": True},
    }


def _read_saml(env: Environment) -> dict[str, Any]:
    metadata = env.url("SIGNALBOX_SAML_METADATA", "", ["https", "http"])
    return {
        "provider_id": "saml",
        "name": env.text("SIGNALBOX_SAML_NAME", "SAML"),
        "client_id": "sso",
        "settings": {
            "idp": {"entity_id": env.text("SIGNALBOX_SAML_ENTITY"), "metadata_url": metadata},
            # The assertion itself is signed, and answers a request of ours.
            "advanced": {"want_assertion_signed": True, "reject_idp_initiated_sso": True, "strict": True},
        },
    }


def _list_apps(ways: list[str]) -> dict[str, Any]:
    names = ["django.contrib.humanize", "allauth", "allauth.account", "allauth.usersessions"]
    if any(way in FACTORS for way in ways):
        names.append("allauth.mfa")
    if any(way in PROVIDERS for way in ways):
        names.append("allauth.socialaccount")
        names += [f"allauth.socialaccount.providers.{name}" for way, name in PROVIDERS.items() if way in ways]
    return {"SIGN_IN_APPS": names}


def _make_account(attempts: str) -> dict[str, Any]:
    adapters = "dashboard.account.sign_in.adapters"
    return {
        "ACCOUNT_ADAPTER": f"{adapters}.AccountAdapter",
        "ACCOUNT_FORMS": {"reset_password": "dashboard.account.sign_in.forms.PasswordResetForm"},
        "ACCOUNT_SIGNUP_ENABLED": False,  # strangers make no accounts; a provider's people are let in by its adapter
        "ACCOUNT_EMAIL_VERIFICATION": "none",
        "ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS": False,  # its mail leads to a page to sign up, which there is not
        "ACCOUNT_LOGIN_METHODS": {"username"},
        "ACCOUNT_LOGOUT_REDIRECT_URL": "/accounts/login/",
        "ACCOUNT_REAUTHENTICATION_METHODS": {"password", "mfa"},
        "ACCOUNT_SESSION_REMEMBER": True,
        # Logins are counted by dashboard.account.login; these are the other steps that take a secret.
        "ACCOUNT_RATE_LIMITS": {"login": None, "login_failed": attempts},
    }


def _make_providers(ways: list[str], apps: dict[str, dict[str, Any]]) -> dict[str, Any]:
    oidc, saml = apps["oidc"], apps["saml"]
    if "oidc" in ways and not (oidc["client_id"] and oidc["settings"]["server_url"]):
        raise ImproperlyConfigured("SIGNALBOX_SIGN_IN has oidc: set SIGNALBOX_OIDC_URL and SIGNALBOX_OIDC_CLIENT")
    if "saml" in ways and not all(saml["settings"]["idp"].values()):
        raise ImproperlyConfigured("SIGNALBOX_SIGN_IN has saml: set SIGNALBOX_SAML_METADATA and SIGNALBOX_SAML_ENTITY")
    return {
        "SOCIALACCOUNT_ADAPTER": "dashboard.account.sign_in.adapters.ProviderAdapter",
        "SOCIALACCOUNT_PROVIDERS": {
            name: {"APPS": [apps[way]], **CLASSES.get(way, {})} for way, name in PROVIDERS.items() if way in ways
        },
        "SOCIALACCOUNT_QUERY_EMAIL": True,
        "SOCIALACCOUNT_EMAIL_AUTHENTICATION": False,  # a mail alone joins nobody to an account
    }


def _make_factors(ways: list[str], *, tls: bool) -> dict[str, Any]:
    types = [name for way, name in FACTORS.items() if way in ways]
    return {
        "MFA_ADAPTER": "dashboard.account.sign_in.factors.FactorAdapter",
        "MFA_SUPPORTED_TYPES": [*types, *(["recovery_codes"] if types else [])],
        "MFA_PASSKEY_LOGIN_ENABLED": "passkeys" in ways,
        "MFA_ALLOW_UNVERIFIED_EMAIL": True,
        "MFA_TOTP_ISSUER": "Signalbox",
        "MFA_TOTP_TOLERANCE": 1,
        "MFA_RECOVERY_CODES_SHOW_ONCE": True,
        "MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN": not tls,  # which browsers allow on localhost alone
    }
