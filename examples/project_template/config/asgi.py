import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_asgi_application()

from dashboard.serving.live_view import add_live_view  # noqa: E402  after the line above

application = add_live_view(application)
