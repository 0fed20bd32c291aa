"""The hash chain of the audit: what was edited, removed, inserted, swapped or cut off is found, and named."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from machines.audit import chain
from machines.audit.entries import record
from machines.engine import Engine
from machines.models import AuditEntry, AuditHead
from machines.retention import duty, erasure
from tests.cases import for_each
from tests.configuration import configure
from tests.engine.builders import machine

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = ("ann", "bob", "cid", "dan", "eve")


@pytest.fixture
def entries() -> QuerySet[AuditEntry]:
    """Five entries, and the ways to change them that somebody with access to the database has."""
    for name in NAMES:
        assert record(
            name, "fire", machine="m", instance=f"of-{name}", target="go", detail={"revision": 1.5, "é": "\0"}
        )
    return QuerySet(AuditEntry)


def find(heads: dict[int, set[str]] | None = None) -> list[str]:
    return chain.verify(heads or {}).findings


def rehash(entries: QuerySet[AuditEntry], begin: int = 1) -> None:
    """Write the chain anew, as somebody does who knows how it is made."""
    previous = AuditEntry.objects.filter(number=begin - 1).values_list("digest", flat=True).first() or ""
    for facts in entries.filter(number__gte=begin).order_by("number").values("pk", "number", *chain.FACTS):
        pk, number = facts.pop("pk"), facts.pop("number")
        previous = chain.digest_of(previous, number, facts)
        entries.filter(pk=pk).update(digest=previous)
        AuditHead.objects.update(number=number, digest=previous)


def edit(entries):
    entries.filter(number=2).update(reason="another")


def edit_detail(entries):
    entries.filter(number=2).update(detail={"revision": 2})


def edit_time(entries):
    entries.filter(number=2).update(at=F("at") - timedelta(microseconds=1))


def edit_with_digest(entries):
    edit(entries)
    facts = entries.filter(number=2).values(*chain.FACTS).get()
    entries.filter(number=2).update(digest=chain.digest_of(entries.get(number=1).digest, 2, facts))


def remove(entries):
    entries.filter(number__in=[2, 3])._raw_delete("default")


def remove_and_close(entries):
    entries.filter(number=2)._raw_delete("default")
    for number in (3, 4, 5):
        entries.filter(number=number).update(number=number - 1)


def insert(entries):
    AuditEntry(actor="mallory", action="login", outcome="done", number=6, digest="0" * 64).save()
    AuditHead.objects.update(number=6, digest="0" * 64)


def insert_between(entries):
    for number in (5, 4, 3):
        entries.filter(number=number).update(number=number + 1)
    AuditEntry(actor="mallory", action="login", outcome="done", number=3, digest="0" * 64).save()
    AuditHead.objects.update(number=6)


def swap(entries):
    names = {number: entries.values_list("actor", "instance").get(number=number) for number in (2, 4)}
    times = {number: entries.values_list("at", flat=True).get(number=number) for number in (2, 4)}
    for number, other in ((2, 4), (4, 2)):
        entries.filter(number=number).update(actor=names[other][0], instance=names[other][1], at=times[other])


def cut_off(entries):
    entries.filter(number__gte=4)._raw_delete("default")


def cut_off_beginning(entries):
    entries.filter(number__lte=2)._raw_delete("default")


def forge_head(entries):
    AuditHead.objects.update(digest="0" * 64)


def remove_head(entries):
    AuditHead.objects.all().delete()


@for_each(
    "tamper, finding",
    [
        (edit, r"^entry 2 \(row \d+, .*, bob, fire\) was edited, or put in the place of another$"),
        (edit_detail, "entry 2 .* was edited"),
        (edit_time, "entry 2 .* was edited"),
        (edit_with_digest, "entry 3 .* was edited, or put in the place of another"),
        (remove, "^entries 2 to 3 were removed, before entry 4 "),
        (remove_and_close, "entry 2 .*, cid, fire.* was edited, or put in the place of another"),
        (insert, "entry 6 .*, mallory, login.* was edited, or put in the place of another"),
        (insert_between, "entry 3 .*, mallory, login.* was edited, or put in the place of another"),
        (swap, "entry 2 .* was swapped with entry 4\n.*entry 4 .* was swapped with entry 2"),
        (cut_off, "^entries 4 to 5, the newest, were cut off$"),
        (cut_off_beginning, "^entries 1 to 2 were removed, before entry 3 "),
        (forge_head, "the head of the database is not the digest of entry 5"),
        (remove_head, "the row of the head is gone"),
    ],
)
def test_a_change_is_found_and_named(request, tamper, finding):
    QuerySet(AuditEntry).all()._raw_delete("default")
    AuditHead.objects.all().delete()
    for name in NAMES:
        record(name, "fire", machine="m", instance=f"of-{name}", target="go", detail={"revision": 1.5})
    assert find() == []
    tamper(QuerySet(AuditEntry))
    assert re.search(finding, "\n".join(find()), re.DOTALL | re.MULTILINE), find()


def test_an_unbroken_chain_is_in_order(entries):
    assert list(entries.order_by("number").values_list("number", "actor")) == list(enumerate(NAMES, 1))
    report = chain.verify({})
    assert (report.checked, report.waiting, report.findings) == (5, 0, [])
    assert (report.number, report.digest) == (5, entries.get(actor="eve").digest)


def test_heads_outside_find_a_chain_that_was_written_anew(entries):
    heads = {entry.number: {entry.digest} for entry in entries}
    edit(entries)
    rehash(entries)
    assert find() == [], "the database alone cannot tell"
    assert [found.partition(" has")[0] for found in find(heads)] == [f"entry {number}" for number in (2, 3, 4, 5)]


def test_heads_outside_find_newest_entries_cut_off_with_the_head(entries):
    last = entries.get(actor="eve").digest
    cut_off(entries)
    AuditHead.objects.update(number=3, digest=entries.get(number=3).digest)
    assert find() == []
    (found,) = find({5: {last}})
    assert found == "head 5 was kept outside, but the chain ends at 3: entries were cut off"


def test_the_beginning_of_a_digest_is_compared(entries):
    digest = entries.get(actor="cid").digest
    assert find({3: {digest[:12]}}) == []
    assert find({3: {"0" * 12}}) == ["entry 3 has another digest than was kept outside: the chain was written anew"]


def test_entries_of_a_transaction_are_chained_when_it_commits(entries):
    with transaction.atomic():
        record("fay", "login")
        record("gil", "login")
        assert entries.filter(number=None).count() == 2
        assert find() == []
    assert list(entries.filter(number__gt=5).order_by("number").values_list("actor", flat=True)) == ["fay", "gil"]
    with transaction.atomic():
        record("hal", "login")
        transaction.set_rollback(True)
    record("ida", "login")
    assert entries.get(actor="ida").number == 8
    assert find() == []


def test_an_entry_whose_writer_was_killed_is_chained_later(entries):
    AuditEntry(actor="old", action="login", outcome="done").save()
    assert chain.verify({}).waiting == 1
    duty.prune()
    assert entries.get(actor="old").number == 6
    assert find() == []


def test_each_head_is_written_to_the_log_and_the_file(settings, caplog, tmp_path):
    configure(settings, AUDIT_HEADS=str(tmp_path / "heads"))
    caplog.set_level(logging.INFO, logger="signalbox.audit.head")
    record("ann", "login")
    with transaction.atomic():
        record("bob", "login")
    heads = [f"{entry.number} {entry.digest}" for entry in AuditEntry.objects.order_by("number")]
    assert len(heads) == 2
    assert [line.getMessage() for line in caplog.records if line.name == "signalbox.audit.head"] == heads
    assert (tmp_path / "heads").read_text().splitlines() == heads


def test_a_file_that_cannot_be_written_fails_no_action(settings, caplog, tmp_path):
    configure(settings, AUDIT_HEADS=str(tmp_path))
    assert record("ann", "login")
    assert "the head of the audit could not be written" in caplog.text


@pytest.fixture
def prune(settings) -> Callable[..., int]:
    """Remove audit entries beyond a bound, so many hours from now."""

    def run(bound: str, hours: float = 2) -> int:
        configure(settings, RETAIN=bound)
        return duty.prune(int((timezone.now() + timedelta(hours=hours)).timestamp() * 1000))["audit"]

    return run


def test_retention_seals_what_went(prune, entries):
    heads = {entry.number: {entry.digest} for entry in entries}
    assert prune("audit_most=3") == 2
    seal = entries.get(action=chain.SEAL)
    assert (seal.number, seal.actor, seal.detail) == (
        6, "retention", {"first": 1, "last": 2, "count": 2, "digest": min(heads[2])},
    )  # fmt: skip
    report = chain.verify(heads)
    assert (report.checked, report.sealed, report.compared, report.findings) == (4, 2, 4, [])


def test_a_removed_row_that_no_seal_covers_is_found(prune, entries):
    prune("audit_most=3")
    entries.filter(number=3)._raw_delete("default")
    assert find()[0].startswith("entry 3 was removed, before entry 4 ")
    assert prune("audit_most=1", hours=4) == 1
    assert find() == ["entry 7 seals 3 to 4, but 1 of these had gone before"]


def test_a_forged_or_removed_seal_is_found(prune, entries):
    prune("audit_most=3")
    seal = entries.get(number=6).detail
    entries.filter(number=3)._raw_delete("default")
    entries.filter(number=6).update(detail=seal | {"last": 3, "count": 3, "digest": entries.get(number=4).digest})
    found = "\n".join(find())
    assert "entry 4 " in found, "the digest is not that of entry 3"
    assert re.search(r"entry 6 .*audit.seal\) was edited", found), found
    entries.filter(number=6).update(detail={"last": "many"})
    assert "entry 6, a seal, cannot be read" in find()
    cut_off_beginning(entries)
    entries.filter(number=6)._raw_delete("default")
    AuditHead.objects.update(number=5, digest=entries.get(number=5).digest)
    assert find()[0].startswith("entries 1 to 3 were removed, before entry 4 ")


def test_seals_do_not_leave_seals(prune, entries):
    assert prune("audit=1h") == 5
    assert find() == []
    assert prune("audit=1h", hours=9) == 0
    record("fay", "login")
    assert prune("audit=1h", hours=0) == 0
    assert prune("audit=1h", hours=0.5) == 0, "one seal an hour is enough"
    assert prune("audit=1h", hours=18) == 2
    assert entries.get().detail["last"] == 7
    assert find() == []
    record("gil", "login")
    for hours in (27, 36, 45):
        assert prune("audit_most=1", hours=hours) == 0
    assert entries.filter(actor="gil").exists()


def test_the_migration_seals_what_went_before_there_were_seals(entries):
    migration = import_module("machines.migrations.0028_audit_seal_and_receivers")
    head = SimpleNamespace(sealed=2, seal=entries.get(number=2).digest)
    heads = SimpleNamespace(objects=SimpleNamespace(filter=lambda **terms: [head]))
    cut_off_beginning(entries)
    migration.write_seal(
        SimpleNamespace(get_model=lambda app, name: heads if name == "AuditHead" else AuditEntry), None
    )
    assert chain.verify({}).sealed == 2
    assert find() == []


def test_what_an_erasure_masked_is_accepted_and_no_other_change_of_it(engine: Engine, entries):
    engine.publish(machine("m", {"A": {}}, context={"mail": ""}))
    engine.create("m", "one", data={"mail": "eve@example.org"})
    record("ann", "export", machine="m", target="eve@example.org", reason="asked by phone")
    with_reason = erasure.erase(engine, "m", where=("mail", "eve@example.org"), actor="ann", reason="asked")
    assert list(with_reason.masked) == ["6"]
    assert [found.partition(" (")[0] for found in find()] == ["entry 6"]
    record("ann", "machine.erase", machine="m", detail=erasure.summarize(with_reason))
    assert find() == []
    entries.filter(number=6).update(reason="nobody asked")
    assert [found.partition(" (")[0] for found in find()] == ["entry 6"]


def test_a_head_that_is_gone_goes_on_behind_the_last_entry(entries):
    remove_head(entries)
    record("fay", "login")
    assert entries.get(actor="fay").number == 6
    assert find() == []


def test_the_migration_chains_what_is_there():
    AuditEntry.objects.bulk_create(AuditEntry(actor=name, action="login", outcome="done") for name in NAMES)
    import_module("machines.migrations.0024_audit_chain").chain_entries(apps, connection.schema_editor)
    assert list(AuditEntry.objects.order_by("number").values_list("actor", flat=True)) == list(NAMES)
    assert chain.verify({}).checked == 5
    assert find() == []


def test_the_command_says_what_it_checked_and_fails_on_a_finding(entries, capsys, tmp_path):
    digest = entries.get(actor="eve").digest
    (tmp_path / "log").write_text(f"2026-11-28 INFO signalbox.audit.head: 5 {digest}\n")
    call_command("audit", "verify", "--heads", str(tmp_path / "log"), "--head", f"5:{digest[:12]}")
    assert capsys.readouterr().out == (
        f"5 entries checked, 0 removed by retention, 0 not chained yet, 1 heads compared\nhead 5:{digest}\n"
    )
    edit(entries)
    with pytest.raises(CommandError, match="the audit was changed:\nentry 2 .* was edited"):
        call_command("audit", "verify")
    for wrong in ("5", "five:abcdefabcdef", "5:abc", "5:xyzxyzxyzxyz"):
        with pytest.raises(CommandError, match="heads cannot be read: .* each ends with a number and a digest"):
            call_command("audit", "verify", "--head", wrong)
    with pytest.raises(CommandError, match="No such file"):
        call_command("audit", "verify", "--heads", str(tmp_path / "nothing"))
