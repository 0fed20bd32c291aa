"""Bulk actions: one event or repair for every instance that a filter finds.

::

    from machines.bulk import Bulk, Order

    bulk = Bulk.start(Order("order", "fire", "ann", "the shop was closed", {"state": "Open"}, event="cancel"))
    bulk.run("ann")           # once it is previewed

- ``definitions``, ``publishing``: the machine it is an instance of, which comes with the first bulk
- ``order``: what is to be done; ``bulk``: what callers hold; ``store``: where selection and results are kept
- ``selecting``, ``previewing``, ``acting``: freezing, the dry run, and doing it, each in bounded pieces
- ``handlers``: the jobs of the workers
"""

from .builtin_machine import BULK
from .bulk import Bulk, Row
from .errors import NotNow
from .order import ACTIONS, FILTERS, Order

__all__ = ["ACTIONS", "BULK", "FILTERS", "Bulk", "NotNow", "Order", "Row"]
