"""The state libraries that models are attached from: each reads what a library declares, and hears its transitions."""

from .django_fsm import DjangoFsm
from .library import ANY, ANY_OTHER, DeclaredTransition, Library, MadeTransition, group, plain

__all__ = ["ANY", "ANY_OTHER", "DeclaredTransition", "DjangoFsm", "Library", "MadeTransition", "group", "plain"]
