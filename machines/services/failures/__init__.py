"""The error inbox: groups of failures as one person may see them, and what operators do with a group.

- ``reading``: the list and one group, counted over the machines in scope
- ``changes``: assign, mute, resolve, reopen
- ``actions``: re-drive or skip the open jobs of a group at a rate
- ``errors``: what is said no to
"""

from .actions import count_open, redrive, skip, stop
from .changes import assign, mute, reopen, resolve
from .errors import BadFailureAction, UnknownFailureGroup
from .reading import FILTERS, GroupView, Listing, get, listed, newest_jobs, running_actions

__all__ = [
    "FILTERS",
    "BadFailureAction",
    "GroupView",
    "Listing",
    "UnknownFailureGroup",
    "assign",
    "count_open",
    "get",
    "listed",
    "mute",
    "newest_jobs",
    "redrive",
    "reopen",
    "resolve",
    "running_actions",
    "skip",
    "stop",
]
