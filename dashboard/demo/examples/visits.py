"""Visits of technicians: rows that the library ``transitions`` moves. The demo attaches them to the room."""

from random import Random

from transitions import Machine

from machines import attach

from .models import Visit

ROWS = 30
CUSTOMERS = ("Adeyemi", "Brunner", "Castillo", "Dubois", "Eriksson", "Fontana")
RULES = Machine(
    model=None,
    model_attribute="status",
    states=["booked", "on_the_way", "done", "missed"],
    initial="booked",
    transitions=[
        ["leave", "booked", "on_the_way"],
        ["finish", "on_the_way", "done"],
        ["miss", "on_the_way", "missed"],
        ["book_again", ["missed", "done"], "booked"],
    ],
    auto_transitions=False,
)


def attach_rows() -> str:
    """Attach the rows; return the machine that follows them."""
    return attach(Visit, "status", machine=RULES, name="visits", columns=["customer"]).machine


def fill(random: Random) -> str:
    """Add the rows that are missing, and return the machine that follows them."""
    machine = attach_rows()
    for _ in range(ROWS - Visit.objects.count()):
        Visit.objects.create(customer=random.choice(CUSTOMERS))
    return machine


def move(random: Random) -> None:
    """Move a row by one of the events of its status."""
    row = random.choice(Visit.objects.all())
    RULES.events[random.choice(RULES.get_triggers(row.status))].trigger(row)
    row.save()
