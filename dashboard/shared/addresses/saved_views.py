"""Lists the saved views of a page."""

from __future__ import annotations

from itertools import islice

from django.http import HttpRequest

from dashboard.models import SavedView
from dashboard.site.mount_point import find_page

SHOWN = 30  # on one page


def list_saved_views(request: HttpRequest, own: str, query: str) -> dict[str, object]:
    """Return the context of the list of views of the page at ``own``, and of the form that saves ``query``."""
    views = list(islice(SavedView.shown_to(request.user, page=find_page(own)[0]), SHOWN))
    return {"views": views, "page": own, "query": query}
