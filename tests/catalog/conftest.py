"""The people of the shop, and its orders."""

from tests.people.orders import actor, order, person

__all__ = ["actor", "order", "person"]
