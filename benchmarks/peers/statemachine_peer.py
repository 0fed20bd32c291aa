"""The activation's *entitle* with python-statemachine; one machine object is kept and set to each account."""

from __future__ import annotations

from account import VALID, Account, serve
from statemachine import State, StateMachine


class Activation(StateMachine):
    Waiting = State(initial=True)
    Active = State()
    Suspended = State()
    entitle = (
        Waiting.to(Active, cond="is_right", on="activate")
        | Waiting.to.itself(cond="may_fail", on="count")
        | Waiting.to(Suspended)
        | Active.to.itself(cond="is_valid", on="reset")
        | Active.to(Suspended, on="reset")
        | Suspended.to(Waiting, on="reset")
    )

    def is_right(self, token: str) -> bool:
        return token == self.model.token

    def may_fail(self) -> bool:
        return self.model.failed < 3

    def is_valid(self, now: int) -> bool:
        return self.model.expires >= now

    def activate(self, now: int) -> None:
        self.model.failed, self.model.expires = 0, now + VALID

    def count(self) -> None:
        self.model.failed += 1

    def reset(self) -> None:
        self.model.failed = 0


machine = Activation(Account())


def entitle(account: Account, now: int) -> None:
    machine.model = account
    machine.current_state_value = account.state
    machine.send("entitle", token=account.token, now=now)


if __name__ == "__main__":
    serve(entitle)
