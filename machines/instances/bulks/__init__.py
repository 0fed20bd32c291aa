"""Bulk actions: one event or repair for every instance that a filter finds.

::

    from machines.instances.bulks import Bulk, Order

    bulk = Bulk.start(Order("order", "fire", "ann", "the shop was closed", {"state": "Open"}, event="cancel"))
    bulk.run("ann")           # once it is previewed

- ``definitions``: the machine it is an instance of, which comes with the first bulk
- ``order``: what is to be done; ``bulk``: what callers hold; ``store``: where selection and results are kept
- ``selection``, ``execution``: freezing and the dry run, and doing it, each in bounded pieces
- ``migration``: the same for moves to another version, by the engine's dry run over the fleet
- ``handlers``: the jobs of the workers
"""

from .bulk import Bulk
from .errors import NotNow
from .order import ACTIONS, BULK, FILTERS, MIGRATE, Order
from .store import Row

__all__ = ["ACTIONS", "BULK", "FILTERS", "MIGRATE", "Bulk", "NotNow", "Order", "Row"]
