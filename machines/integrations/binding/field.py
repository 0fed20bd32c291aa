"""The model field: two columns, and a value that can fire."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.core import checks
from django.db import models, router
from django.db.models.query_utils import DeferredAttribute

from machines.engine import BadInput

from . import row_signals
from .bound_state import BoundState
from .errors import ColumnGone, MirrorReadOnly, NotSaved
from .state_columns import MirroredRevision, MirroredText, check_id

GIVEN = "given to a new row"
ON_DELETE = ("keep", "delete")
OPTIONS = ("verbose_name", "max_length", "db_index", "db_column", "db_comment", "help_text", "db_tablespace")


def is_historical(model: type[models.Model]) -> bool:
    """Tell whether a model stands for a moment in the migrations: it has columns and no behaviour."""
    return model.__module__ == "__fake__"


def demand_no_update(query: Any, columns: Collection[str], label: str) -> None:
    """Raise MirrorReadOnly for ``bulk_create(update_conflicts=True)`` that would empty these columns of rows."""
    if {field.name for field in getattr(query, "update_fields", None) or ()} & set(columns):
        raise MirrorReadOnly(
            label, "updated", column="the columns", hint=f"leave {' and '.join(columns)} out of update_fields"
        )


def read_follows(given: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return data field -> column of what was given as ``follows=``. Raises TypeError."""
    found = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
    if isinstance(given, str) or not all(isinstance(name, str) for pair in found.items() for name in pair):
        raise TypeError(
            f'follows takes names of columns, such as ["total"], or {{"data field": "column"}}, not {given!r}'
        )
    return found


class UnchangedValue:
    """Stands for the value that the column has. It is no expression of Django, which from 6.0 on would read the column
    back into the row."""

    def __init__(self, column: str) -> None:
        self._column = column

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Sequence[Any]]:
        return connection.ops.quote_name(self._column), ()


class MirrorColumn(models.Field):
    """A column that only the product writes: ``save()`` leaves it as the database has it. It also sees the fields of an
    upsert, since Django asks each column where it builds the statement. ``mirrored``: a value that may be written."""

    mirrored: type[MirroredText] | type[MirroredRevision]
    descriptor_class: type[MirrorAttribute]

    def _refuse(self, attempt: str) -> MirrorReadOnly:
        """Make the error for an attempt to write it."""
        raise NotImplementedError

    def pre_save(self, row: models.Model, add: bool) -> Any:
        """Leave the column as it is: what a row in memory says may be old. A new row begins without a state."""
        if is_historical(type(row)):
            return super().pre_save(row, add)
        if not add:
            return UnchangedValue(self.column)
        if row.__dict__.get(self.attname):
            raise self._refuse(GIVEN)
        return self.mirrored()

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        ours = isinstance(value, self.mirrored) or hasattr(value, "as_sql") or is_historical(self.model)
        restored = isinstance(value, self.descriptor_class.bound) and getattr(value.row, row_signals.RESTORED, False)
        if not ours and not restored:
            raise self._refuse("updated")
        return super().get_db_prep_save(value, connection)

    def get_placeholder_sql(self, value: Any, compiler: Any, connection: Any) -> tuple[str, Sequence[Any]]:
        if not is_historical(self.model):
            demand_no_update(compiler.query, [self.name], self._refuse("updated").field)
        return compiler.compile(value) if hasattr(value, "as_sql") else ("%s", [value])

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        """Do the same before Django 6.1."""
        self.get_placeholder_sql(None, compiler, connection)
        return "%s"


class BoundRevision(int):
    """A revision as a row has it; copied or pickled, it is a plain number."""

    row: models.Model

    def __new__(cls, value: int, row: models.Model) -> BoundRevision:
        made = super().__new__(cls, value)
        made.row = row
        return made

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class MirrorAttribute(DeferredAttribute):
    """The attribute of a row that is read and not assigned to."""

    field: Any
    bound: type[BoundState] | type[BoundRevision]

    def __get__(self, row: models.Model | None, owner: Any = None) -> Any:
        value = super().__get__(row, owner)
        return value if row is None or is_historical(type(row)) else self.bind(value, row)

    def __set__(self, row: models.Model, value: Any) -> None:
        held, name = row.__dict__, self.field.attname
        if self._may_set(row, value):
            held[name] = self.plain(value)
        elif name not in held or self.plain(value) != held[name]:
            raise self.field._refuse("assigned to")

    def bind(self, value: Any, row: models.Model) -> Any:
        raise NotImplementedError

    def plain(self, value: Any) -> Any:
        raise NotImplementedError

    def _may_set(self, row: models.Model, value: Any) -> bool:
        """Tell whether a value may be set: a new object takes what its constructor has, later only the row itself."""
        if row._state.adding and self.field.attname not in row.__dict__:
            return True
        if isinstance(value, self.bound):
            same = value.row
            return same._meta.concrete_model is row._meta.concrete_model and same.pk == row.pk
        return is_historical(type(row))


class RevisionAttribute(MirrorAttribute):
    """The attribute with the revision: a number."""

    bound = BoundRevision

    def bind(self, value: Any, row: models.Model) -> Any:
        return BoundRevision(value, row) if isinstance(value, int) else value

    def plain(self, value: Any) -> Any:
        return int(value) if isinstance(value, int) else value


class RevisionField(MirrorColumn, models.BigIntegerField):
    """The revision of the instance that the state belongs to."""

    descriptor_class = RevisionAttribute
    mirrored = MirroredRevision

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"default": 0, "editable": False, **kwargs})

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, _, args, kwargs = super().deconstruct()
        return name, "machines.fields.RevisionField", args, kwargs

    def _refuse(self, attempt: str) -> MirrorReadOnly:
        label = f"{self.model._meta.label}.{self.name.removesuffix('_revision')}"
        return MirrorReadOnly(label, attempt, column=self.name)

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(int(value) if isinstance(value, int) else value)


class StateAttribute(MirrorAttribute):
    """The attribute with the state: reads as a BoundState."""

    bound = BoundState

    def bind(self, value: Any, row: models.Model) -> Any:
        return BoundState(value, row, self.field)

    def plain(self, value: Any) -> Any:
        return str(value)


class MachineField(MirrorColumn, models.CharField):
    """Shows the state of the instance that belongs to a row, as text.

    ``machine``: its name. ``id_from``: the unique field whose value, as text, is the instance's id, by default the
    primary key. ``follows``: columns whose values the instance has as data, today's with each event: their names, or
    {data field: name}. ``data``: ``data(row)`` returns what else the instance is created with. ``on_delete``: whether
    deleting the row keeps the instance ("keep") or deletes it ("delete"). ``databases``: aliases whose rows workers
    look after, by default the one that the router writes to.

    A second column, ``<name>_revision``, holds the revision of the instance that the state belongs to.
    """

    descriptor_class = StateAttribute
    mirrored = MirroredText
    is_machine_field = True

    def __init__(
        self,
        machine: str,
        *,
        id_from: str = "pk",
        follows: Sequence[str] | Mapping[str, str] = (),
        data: Callable[[Any], Mapping[str, Any]] | None = None,
        on_delete: str = "keep",
        databases: Sequence[str] = (),
        **options: Any,
    ) -> None:
        if on_delete not in ON_DELETE:
            raise TypeError(f"on_delete is one of {', '.join(ON_DELETE)}, not {on_delete!r}")
        if foreign := [name for name in options if name not in (*OPTIONS, "default", "blank", "editable", "name")]:
            raise TypeError(f"MachineField takes {', '.join(OPTIONS)} of Django's options, not {', '.join(foreign)}")
        self.machine, self.id_from, self.data = machine, id_from, data
        self.follows = read_follows(follows)
        self.on_delete, self._databases = on_delete, tuple(databases)
        fixed = {"default": "", "blank": True, "editable": False}
        super().__init__(**{"max_length": 255, "db_index": True} | options | fixed)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        """Return what makes the column for migrations, and the machine's name for readers."""
        name, _, _, options = super().deconstruct()
        kept = {option: value for option, value in options.items() if option not in ("default", "blank", "editable")}
        return name, "machines.fields.MachineField", [self.machine], kept

    def contribute_to_class(self, cls: type[models.Model], name: str, private_only: bool = False) -> None:
        super().contribute_to_class(cls, name, private_only)
        if is_historical(cls):
            return  # there the revision is a field of its own
        row_signals.connect()
        if self.revision_name not in cls.__dict__:
            cls.add_to_class(self.revision_name, RevisionField())

    # What it belongs to

    @property
    def label(self) -> str:
        """Return the field's name with app and model: ``shop.Order.status``."""
        return f"{self.model._meta.label}.{self.name}"

    @property
    def revision_name(self) -> str:
        """Return the name of the column with the revision."""
        return f"{self.name}_revision"

    @property
    def id_field(self) -> models.Field[Any, Any]:
        """Return the field whose value is the id. Raises FieldDoesNotExist."""
        found = self.model._meta.pk if self.id_from == "pk" else self.model._meta.get_field(self.id_from)
        assert isinstance(found, models.Field)
        return found

    def instance_id(self, row: models.Model) -> str:
        """Return the id of a row's instance. Raises NotSaved."""
        if row._state.adding or getattr(row, self.id_field.attname) is None:
            raise NotSaved(self.label)
        return self.find_id(row)

    def find_id(self, row: models.Model) -> str:
        """Return the id of a row that was written, also while Django still holds it for new."""
        return str(self.id_field.to_python(getattr(row, self.id_field.attname)))

    def demand_id(self, row: models.Model) -> None:
        """Raise BadInput where the id field of a row that is about to be saved has a value that can be no id."""
        value = getattr(row, self.id_field.attname)
        if (value is None and self.id_field.primary_key) or hasattr(value, "resolve_expression"):
            return  # the database makes it
        if (problem := check_id(value)) is not None:
            raise BadInput(
                f"{self.label} takes the instance's id from {self.id_field.name}, which cannot be {value!r}:"
                f" it {problem}"
            )

    def databases(self) -> list[str]:
        """List the aliases whose rows workers look after."""
        return list(self._databases or [router.db_for_write(self.model)])

    def creation_data(self, row: models.Model) -> dict[str, Any]:
        """Return the data that the instance of a row is created with."""
        return dict(self.data(row)) if self.data is not None else {}

    def list_followed(self) -> list[models.Field[Any, Any]]:
        """List the columns of ``follows``, in its order. Raises ColumnGone."""
        if not self.follows:
            return []
        known = {column.name: column for column in self.model._meta.concrete_fields}
        for name in self.follows.values():
            if name not in known:
                raise ColumnGone(self.label, name, known)
        return [known[name] for name in self.follows.values()]

    # Writing

    def pre_save(self, row: models.Model, add: bool) -> Any:
        value = super().pre_save(row, add)
        if add and not is_historical(type(row)):
            self.demand_id(row)
        return value

    def _refuse(self, attempt: str) -> MirrorReadOnly:
        hint = f"fire an event once it is saved: row.{self.name}.fire('<event>')"
        copied = "a copy made with pk=None keeps the state of the old row, so make a new object instead"
        return MirrorReadOnly(self.label, attempt, hint=f"{hint}; {copied}" if attempt == GIVEN else "")

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(str(value) if isinstance(value, str) else value)

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.value_from_object(obj))

    def check(self, **options: Any) -> list[checks.CheckMessage]:
        from .checks import check_field

        return [*super().check(**options), *check_field(self)]
