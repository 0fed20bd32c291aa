"""The rights that a schedule takes, and whether the person who made it still holds them.

A schedule of a person runs in their name, so it runs as long as they may do themselves what it does. Those that code or
a definition declares, and those of programs, are nobody's.
"""

from machines.people import permissions

from .document import Order, Schedule

ENQUEUE, OTHERS = ("operate",), ("operate", "fire")


def list_rights(schedule: Schedule) -> tuple[str, ...]:
    """List the rights on its machine that it takes to make it, and to run it."""
    return ENQUEUE if schedule.does == "enqueue" else OTHERS


def find_lost_right(order: Order) -> str:
    """Say why a schedule may not run any more in the name of its author; "" where it may."""
    if not order.person:
        return ""
    from django.contrib.auth import get_user_model

    users = get_user_model()
    user = users.objects.filter(**{users.USERNAME_FIELD: order.author}).first()
    if user is None:
        return f"there is no account {order.author} any more"
    if not user.is_active:
        return f"the account {order.author} is not active"
    machine = order.schedule.machine
    lost = [right for right in list_rights(order.schedule) if not permissions.allows(user, right, machine)]
    return f"{order.author} lost the right to {' and to '.join(lost)} on {machine}" if lost else ""
