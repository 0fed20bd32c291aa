"""Addresses of the pages and the API, in the namespace ``signalbox``. A project includes them under any prefix.

In a project each view is wrapped in what its answer needs; the project's middleware stays as it is.
"""

from django.apps import apps
from django.urls import include, path

from dashboard.serving.health import healthz, readyz
from dashboard.serving.metrics.views import metrics
from dashboard.serving.middleware.own_pages import wrap_patterns

app_name = "signalbox"
EXAMPLES = "dashboard.demo.examples"
_patterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", include("dashboard.api.urls")),
    *([path("patterns/", include(f"{EXAMPLES}.urls"))] if apps.is_installed(EXAMPLES) else []),
    path("", include("dashboard.page_urls")),
]
urlpatterns = wrap_patterns(_patterns)
