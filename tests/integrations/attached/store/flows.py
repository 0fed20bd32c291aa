"""Models that other libraries move, as projects have them."""

from __future__ import annotations

from django.db import models
from statemachine import State, StateMachine
from transitions import Machine
from viewflow import fsm

from machines.integrations.attached import follow


class Stage(models.TextChoices):
    DRAFT = "draft", "Draft"
    APPROVED = "approved", "Approved by the board"
    HIDDEN = "hidden", "Hidden"


class Report(models.Model):
    """Moved by a flow of viewflow.fsm."""

    stage = models.CharField(max_length=20, choices=Stage.choices, default=Stage.DRAFT)
    text = models.TextField(default="text")

    def __str__(self) -> str:
        return f"report {self.pk}"


def has_text(flow) -> bool:
    return bool(flow.report.text)


class ReportFlow:
    stage = fsm.State(Stage, default=Stage.DRAFT)

    def __init__(self, report: Report) -> None:
        self.report = report

    @stage.setter()
    def _set_stage(self, value) -> None:
        self.report.stage = value

    @stage.getter()
    def _get_stage(self):
        return self.report.stage

    @stage.on_success()
    def _save(self, descriptor, source, target, **given) -> None:
        self.report.save()

    @stage.transition(
        Stage.DRAFT,
        Stage.APPROVED,
        label="Approve it",
        conditions=[has_text],
        permission=lambda flow, user: user.is_staff,
    )
    def approve(self, by=None, breaks: bool = False) -> None:
        if breaks:
            raise ValueError("the board is away")

    @stage.transition(fsm.State.ANY, Stage.HIDDEN, permission=None)
    def hide(self) -> None:
        pass

    @stage.transition(Stage.HIDDEN)
    def remind(self) -> None:
        pass


class Lamp(models.Model):
    """Moved by ``transitions``, with a Machine of each row."""

    state = models.CharField(max_length=20, default="off")
    power = models.BooleanField(default=True)

    def __init__(self, *values, **named) -> None:
        super().__init__(*values, **named)
        self.machine = Machine(
            self, states=["off", "on", "broken"], initial=self.state, transitions=[
                {"trigger": "switch", "source": "off", "dest": "on", "conditions": "has_power"},
                {"trigger": "switch", "source": "on", "dest": "off"},
                {"trigger": "drop", "source": "*", "dest": "broken", "before": "mind"},
                {"trigger": "wipe", "source": "on", "dest": None},
            ],
        )  # fmt: skip
        follow(self.machine)

    def __str__(self) -> str:
        return f"lamp {self.pk}"

    def has_power(self, *given, **named) -> bool:
        return self.power

    def mind(self, *given, careful: bool = False, **named) -> None:
        if careful:
            raise ValueError("it is held")


class Door(models.Model):
    """Moved by one Machine of ``transitions`` for all rows."""

    state = models.CharField(max_length=20, default="open")

    def __str__(self) -> str:
        return f"door {self.pk}"


doors = Machine(model=None, states=["open", "closed"], initial="open", transitions=[["close", "open", "closed"]])


class ParcelMachine(StateMachine):
    waiting = State(initial=True)
    sent = State(value="on the way")
    lost = State(final=True)

    send_off = waiting.to(sent, cond="has_address")
    lose = sent.to(lost, on="look_for_it")

    def has_address(self) -> bool:
        return self.model.address != ""

    def look_for_it(self, found: bool = False) -> None:
        if found:
            raise ValueError("there it is")


class Parcel(models.Model):
    """Moved by python-statemachine."""

    state = models.CharField(max_length=20, default="waiting")
    address = models.CharField(max_length=50, default="Main street 1")

    def __str__(self) -> str:
        return f"parcel {self.pk}"
