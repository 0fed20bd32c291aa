"""The ASGI application: Django over HTTP, the live view over websockets."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
django.setup(set_prefix=False)  # what follows may import models

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.core.exceptions import ImproperlyConfigured  # noqa: E402

from dashboard.serving.checks import system_checks  # noqa: E402
from dashboard.serving.metrics import instruments  # noqa: E402
from dashboard.shared.concurrency_limits import Slots  # noqa: E402
from machines.conf import conf  # noqa: E402

from .serving.admission import Admission  # noqa: E402
from .serving.event_loop_views import EventLoopHandler, ThreadedHandler  # noqa: E402
from .serving.live_view import make_live_application, websocket_urlpatterns  # noqa: E402

# `manage.py` looks at the installation before every command; a bare uvicorn or daphne only comes by here.
if refusals := system_checks.refusals():
    raise ImproperlyConfigured(refusals)

instruments.register()
application = ProtocolTypeRouter(
    {
        "http": Admission(ThreadedHandler(), EventLoopHandler(), Slots.of(conf.THREADS)),
        "websocket": make_live_application(URLRouter(websocket_urlpatterns)),
    }
)
