"""Sign-in by django-allauth: identity providers, second factors, passkeys, and pages for passwords and sessions.

Imported only where ``SIGNALBOX_SIGN_IN`` switches it on, or where a project names an adapter of it.
"""
