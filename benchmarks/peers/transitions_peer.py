"""The activation's *entitle* with `transitions`; one machine and one model are kept and set to each account."""

from __future__ import annotations

from account import VALID, Account, serve
from transitions import EventData, Machine


class Model:
    account: Account
    state: str

    def is_right(self, event: EventData) -> bool:
        return event.kwargs["token"] == self.account.token

    def may_fail(self, event: EventData) -> bool:
        return self.account.failed < 3

    def is_valid(self, event: EventData) -> bool:
        return self.account.expires >= event.kwargs["now"]

    def activate(self, event: EventData) -> None:
        self.account.failed, self.account.expires = 0, event.kwargs["now"] + VALID

    def count(self, event: EventData) -> None:
        self.account.failed += 1

    def reset(self, event: EventData) -> None:
        self.account.failed = 0


TRANSITIONS = [
    {"source": "Waiting", "dest": "Active", "conditions": "is_right", "after": "activate"},
    {"source": "Waiting", "dest": "=", "conditions": "may_fail", "after": "count"},
    {"source": "Waiting", "dest": "Suspended"},
    {"source": "Active", "dest": "=", "conditions": "is_valid", "after": "reset"},
    {"source": "Active", "dest": "Suspended", "after": "reset"},
    {"source": "Suspended", "dest": "Waiting", "after": "reset"},
]

model = Model()
machine = Machine(
    model,
    states=["Waiting", "Active", "Suspended"],
    transitions=[{"trigger": "entitle"} | transition for transition in TRANSITIONS],
    initial="Waiting",
    send_event=True,
)


def entitle(account: Account, now: int) -> None:
    model.account = account
    machine.set_state(account.state, model)
    model.entitle(token=account.token, now=now)
    account.state = model.state


if __name__ == "__main__":
    serve(entitle)
