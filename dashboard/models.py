"""Saved views, which are searches or lists that a person keeps under a name; and preferences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.db.models import Q, QuerySet
from django.urls import Resolver404

from dashboard.site.mount_point import find_page, mount_path
from machines.audit import redaction
from machines.engine import BadInput, SignalboxError
from machines.instances.query_line import read_line, split_line
from machines.people.permissions import allows, anywhere, scope_of

MOST = 100  # views of one person
PAGES = ("overview", "machine", "queues", "queue", "workers", "audit")
"""Names of the addresses that can be kept; every one is a page that only shows."""
PLACES = ("cursor", "back", "before")
"""Terms that name a position in a list."""
AUDIT = "/audit/"


class SavedView(models.Model):
    """``page`` is a path below the place where the pages are mounted, ``query`` what stands behind it. ``shared``:
    everybody who may see the page may see the view, too; ``machine`` is empty for a page of no machine."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=60)
    machine = models.CharField(max_length=64, blank=True, default="")
    page = models.CharField(max_length=300)
    query = models.CharField(max_length=2000, blank=True, default="")
    shared = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name", "id")
        constraints = (models.UniqueConstraint(fields=("owner", "name"), name="one_view_of_a_name"),)
        indexes = (models.Index(fields=("page",), name="view_page"),)

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the view. Raises ValidationError for an unknown page, a name that is taken, and one view too many."""
        self.full_clean()
        if self._state.adding and SavedView.objects.filter(owner=self.owner).count() >= MOST:
            raise ValidationError({"name": f"{MOST} views per person is the maximum: delete one"})
        try:
            with transaction.atomic():
                super().save(*args, **kwargs)
        except IntegrityError:
            raise ValidationError({"name": "you already have a view with this name"}) from None

    @property
    def url(self) -> str:
        path = mount_path().rstrip("/") + self.page
        return f"{path}?{self.query}" if self.query else path

    @property
    def address(self) -> str:
        """``url``, and of a machine's page its list."""
        return f"{self.url}#instances" if self.machine else self.url

    def clean(self) -> None:
        """Check that the page is one of ours; write the query anew, without the position in a list."""
        try:
            self.page, found = find_page(self.page)
        except Resolver404 as error:
            raise ValidationError({"page": "unknown page"}) from error
        if found.url_name not in PAGES:
            raise ValidationError({"page": "this page cannot be saved"})
        self.machine = str(found.kwargs.get("machine", ""))
        terms = [(name, text) for name, text in parse_qsl(self.query) if name not in PLACES]
        self.query = urlencode(terms)
        self.name = self.name.replace("\0", "").strip()  # PostgreSQL takes none
        fields = [text for key, text in self._list_terms() if key in ("by", "data")]
        if self.machine and redaction.find_encrypted(self.machine, fields):
            raise ValidationError({"page": "a view that filters by an encrypted field cannot be saved"})
        try:
            self._demand_findable(not self.shared)
        except BadInput as error:
            message = "a view that filters by a sensitive field or by an error text cannot be shared"
            raise ValidationError(
                {"shared": message if isinstance(error, redaction.Concealed) else str(error)}
            ) from error

    def hides_from(self, user: Any, reveal: bool) -> bool:
        """Return whether its terms hold what is hidden from a person who is not its owner: a field may have been marked
        since it was shared. ``reveal``: whether the person may see sensitive fields of its machine."""
        if self.owner_id == user.pk:
            return False
        try:
            self._demand_findable(reveal)
        except SignalboxError:  # or Redis does not say now what is sensitive
            return True
        return False

    def _demand_findable(self, reveal: bool) -> None:
        """Raise Concealed if its terms would reveal the content of a sensitive field or of a handler's error, BadInput
        for a filter that cannot be read."""
        if reveal or not self.machine:
            return
        terms = self._list_terms()
        fields = [text for name, text in terms if name in ("by", "data")]
        errors = [text for name, text in terms if name in ("error", "text")]
        for error in errors or [""]:
            redaction.demand_findable(False, self.machine, fields, error)

    def _list_terms(self) -> list[tuple[str, str]]:
        """List the terms with their texts; of conditions on data fields, the names of the fields."""
        terms = [(name, text.strip()) for name, text in parse_qsl(self.query)]
        terms += [term for name, text in terms if name == "query" for term in read_line(text).items()]
        data = [("data", term.key) for name, text in terms if name == "data" for term in split_line(text)]
        return [term for term in terms if term[0] != "data"] + data

    def clean_fields(self, exclude: Any = None) -> None:
        self.clean()
        super().clean_fields(exclude)

    @classmethod
    def visible_to(cls, user: Any) -> QuerySet[SavedView]:
        """Return a user's own views, and shared ones, of pages the user may open; ``list_for`` leaves out what they may
        not read."""
        if not user.is_authenticated or not anywhere(user, "view"):
            return cls.objects.none()
        found = cls.objects.filter(Q(owner_id=user.pk) | Q(shared=True)).select_related("owner")
        scope = scope_of(user)
        if not scope.all:
            found = found.filter(machine__in=["", *scope.names])
        return found if anywhere(user, "audit") else found.exclude(page=AUDIT)

    @classmethod
    def list_for(cls, user: Any, reveals: Callable[[str], bool] | None = None, **wanted: Any) -> Iterator[SavedView]:
        """Yield the views of ``visible_to`` whose terms hold nothing that is hidden from the user. ``reveals``: whether
        they may see sensitive fields of a machine, if less than the user's own permission counts; ``wanted``:
        columns."""
        sees = reveals or (lambda machine: allows(user, "reveal", machine))
        for view in cls.visible_to(user).filter(**wanted):
            if not view.hides_from(user, sees(view.machine)):
                yield view


class Preferences(models.Model):
    """The theme, time zone, clock, live updates and keyboard shortcuts of a person, and whether they ended the tour.
    Without them the site's time zone counts, and the page offers the browser's once. What machines read stays in
    UTC."""

    class Clock(models.IntegerChoices):
        DAY = 24, "24 hours: 14:05"
        HALF = 12, "12 hours: 2:05 pm"

    class Theme(models.TextChoices):
        SYSTEM = "", "as the system"
        LIGHT = "light", "light"
        DARK = "dark", "dark"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="preferences"
    )
    time_zone = models.CharField(max_length=64, blank=True)  # an IANA name; "" where the person never chose
    clock = models.PositiveSmallIntegerField(choices=Clock.choices, default=Clock.DAY)
    calm = models.BooleanField(default=False)  # pages change every few seconds, and nothing on them moves
    theme = models.CharField(max_length=5, choices=Theme.choices, default=Theme.SYSTEM, blank=True)
    toured = models.BooleanField(default=False, db_default=False)  # the tour of the demo is over
    keys = models.BooleanField(default=True)  # single letters are shortcuts

    class Meta:
        verbose_name_plural = "preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user}"
