"""``manage.py machine sync``: definitions of the apps' ``statemachines/`` folders against the published versions."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from django.contrib.auth.models import User

from machines.catalog import publishing
from machines.catalog.versions import drafts
from machines.catalog.versions import publication as definitions
from machines.engine import Engine
from machines.formats import dump
from machines.models import AuditEntry, Draft, Machine, MachineVersion
from machines.people.actor import Actor
from tests.configuration import configure
from tests.conftest import NOWHERE, remove

from .repository import ORDER, REFUND, Repository, sync

FILE = "shop/statemachines/order.yaml"
WIDER = ORDER.replace("cancel: New", "cancel: New, lose: Paid")
OTHER = ORDER.replace("Shipped: {type: final}", "Shipped: {type: final, description: on its way}")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = Repository(tmp_path, monkeypatch)
    found.add_app("shop")
    found.write(FILE, ORDER)
    return found


def held(engine: Engine, name: str = "order") -> tuple[list[int], list[int], int, int]:
    """Numbers of the versions in Redis and in SQL, and the current one of both."""
    machine = Machine.objects.get(name=name)
    recorded = sorted(machine.versions.values_list("number", flat=True))
    return engine.versions(name), recorded, engine.machines()[name], machine.current


@pytest.mark.django_db
def test_sync_publishes_what_is_new_or_changed_once(repository: Repository, engine: Engine) -> None:
    out, err, why = sync()
    assert out == f"order  new  v1  {FILE}\n1 machine: 1 new; no findings\n"
    assert (err, why) == ("", "")
    assert sync()[0] == f"order  unchanged  v1  {FILE}\n1 machine: 1 unchanged; no findings\n"
    repository.write(FILE, WIDER)
    assert sync()[0].startswith(f"order  changed  v1 → v2  {FILE}\n")
    assert held(engine) == ([1, 2], [1, 2], 2, 2)
    entries = AuditEntry.objects.filter(action="publish", machine="order")
    assert {entry.reason for entry in entries} == {f"machine sync: {FILE}"}
    assert MachineVersion.objects.get(number=2).notes == f"machine sync: {FILE}"


@pytest.mark.django_db
def test_a_change_of_words_alone_is_a_version_too(repository: Repository, engine: Engine) -> None:
    sync()
    repository.write(FILE, OTHER)
    assert "changed" in sync("--check")[0]
    sync()
    assert held(engine) == ([1, 2], [1, 2], 2, 2)
    assert sync("--check")[2] == ""


@pytest.mark.django_db
@pytest.mark.parametrize("first", ["engine", "sync"])
def test_a_program_and_sync_publish_one_version_with_one_number(
    repository: Repository, engine: Engine, first: str
) -> None:
    for text in (ORDER, WIDER, OTHER, ORDER):
        repository.write(FILE, text)
        calls = [sync, lambda text=text: engine.publish(yaml.load(text, yaml.BaseLoader))]
        for call in calls if first == "sync" else reversed(calls):
            call()
        in_redis, in_sql, current, recorded = held(engine)
        assert (in_redis, current) == (in_sql, recorded)
        assert sync("--check")[2] == ""
    publishing.adopt_published({})
    assert publishing.list_diverged(Machine.objects.get()) == []
    assert held(engine)[0] == [1, 2, 3, 4]


@pytest.mark.django_db
def test_check_fails_for_drift_and_writes_nothing(repository: Repository, engine: Engine) -> None:
    out, _, why = sync("--check")
    assert out.startswith(f"order  new  -  {FILE}\n")
    assert why == "not as in the files: order (new)"
    assert engine.machines() == {}
    assert sync("--dry-run") == (out, _missing(), "")
    assert engine.machines() == {}
    sync()
    assert sync("--check", "--strict")[1:] == (_missing(), "1 finding")


def _missing() -> str:
    return f'warning: {FILE}: state Paid of order invokes "ship_order", and no app has that handler\n'


@pytest.mark.django_db
def test_a_version_published_by_hand_is_newer_than_the_file(repository: Repository, engine: Engine) -> None:
    sync()
    alice = User.objects.create_superuser("alice")
    hotfix = yaml.load(WIDER, yaml.BaseLoader)
    definitions.publish(Actor(alice, "page"), hotfix)
    out, _, why = sync("--check")
    assert "order  newer version  v2" in out
    assert "v2, published by alice on " in out
    assert "is newer than the file, which is v1" in out
    assert "order (newer version)" in why
    out, _, why = sync()
    assert why.startswith("left as they are: order. Bring the newer version into the file")
    assert engine.machines()["order"] == 2
    repository.write(FILE, dump(engine.definition("order"), "yaml")[0])
    assert sync("--check")[2] == ""
    repository.write(FILE, ORDER)
    assert sync("--overwrite")[2] == ""
    assert held(engine) == ([1, 2, 3], [1, 2, 3], 3, 3)


@pytest.mark.django_db
def test_a_file_that_goes_on_from_a_version_by_hand_replaces_it_and_says_so(
    repository: Repository, engine: Engine
) -> None:
    engine.publish(yaml.load(ORDER, yaml.BaseLoader))
    repository.write(FILE, WIDER)
    out, _, why = sync()
    assert "replaces v1, published by a command or a program" in out
    assert (why, engine.machines()["order"]) == ("", 2)


@pytest.mark.django_db
def test_a_file_that_was_reverted_is_published_again(repository: Repository, engine: Engine) -> None:
    for text in (ORDER, WIDER, ORDER):
        repository.write(FILE, text)
        assert sync()[2] == ""
    assert held(engine) == ([1, 2, 3], [1, 2, 3], 3, 3)


@pytest.mark.django_db
def test_a_redis_that_lost_its_data_is_drift_and_sync_restores_it(
    repository: Repository, engine: Engine, cleaner, prefix: str
) -> None:
    sync()
    remove(cleaner, prefix)
    out, _, why = sync("--check")
    assert "only the database has it" in out
    assert why == "not as in the files: order (not in Redis)"
    assert sync()[2] == ""
    assert held(engine) == ([1], [1], 1, 1)


@pytest.mark.django_db
def test_without_redis_check_finds_and_says_what_it_did_not(repository: Repository, prefix: str, settings) -> None:
    configure(settings, REDIS_URL=NOWHERE)
    out, err, why = sync("--check")
    assert "1 machine: not compared; 1 warning" in out
    assert "differences were not checked: " in err
    assert why == "differences were not checked (--offline leaves them out)"
    assert sync("--check", "--offline")[2] == ""
    assert "SB5" in sync()[2]
    repository.write(FILE, ORDER.replace("pay: Paid", "pay: Piad"))
    assert sync("--check", "--offline")[2] == "1 finding"
    assert sync()[2] == "nothing was published: 1 error"
    assert sync("--offline")[2].startswith("--offline goes with --check")


@pytest.mark.django_db
def test_an_error_in_one_file_publishes_nothing(repository: Repository, engine: Engine) -> None:
    repository.write("shop/statemachines/refund.yaml", REFUND.replace("grant: Granted", "grant: Garnted"))
    _, err, why = sync()
    assert err.startswith("error: shop/statemachines/refund.yaml:4: SB101 states.Asked.on.grant: ")
    assert 'did you mean "Granted"?' in err
    assert why == "nothing was published: 1 error"
    assert engine.machines() == {}


@pytest.mark.django_db
def test_a_machine_of_two_apps_is_an_error_that_names_both(repository: Repository, engine: Engine) -> None:
    repository.add_app("store")
    repository.write("store/statemachines/order.json", dump(yaml.load(ORDER, yaml.BaseLoader), "json")[0])
    for arguments in ([], ["--app", "store"], ["--check", "--offline"]):
        _, err, why = sync(*arguments)
        assert f"the machine 'order' stands in {FILE} and store/statemachines/order.json" in err
        assert why
    assert engine.machines() == {}


@pytest.mark.django_db
def test_one_app_alone(repository: Repository, engine: Engine) -> None:
    repository.add_app("refunds")
    repository.write("refunds/statemachines/refund.yaml", REFUND)
    sync("--app", "refunds")
    assert list(engine.machines()) == ["refund"]
    assert sync("--app", "refund")[2] == "--app: No installed app with label 'refund'."


@pytest.mark.django_db
def test_those_that_others_send_to_come_first(repository: Repository, engine: Engine) -> None:
    repository.write("shop/statemachines/a.yaml", REFUND.replace("id: refund", "id: a_refund"))
    assert [line.split()[0] for line in sync()[0].splitlines()[:2]] == ["order", "a_refund"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("enc.yaml", "id: ä".encode("latin-1"), "enc.yaml:1:5: SB134 not UTF-8"),
        ("wide.json", '{"id": "a"}'.encode("utf-16"), "it looks like UTF-16; save it as UTF-8"),
        ("two.yaml", f"{ORDER}---\n{REFUND}", "two.yaml:7:1: SB135 the text holds several documents; keep one"),
        ("two.json", "[{}, {}]", "a file holds one machine: give each a file of its own"),
        ("empty.yaml", "", "empty.yaml: SB131 definition: the text is empty"),
        ("cut.json", '{"id": "a",\n "initial" "A"}', "cut.json:2:12: SB131 not JSON: Expecting ':' delimiter"),
        ("nameless.yaml", "initial: A\nstates: {A: {}}", 'nameless.yaml: SB106 id: "id" is missing'),
        ("gone.json", None, "gone.json: SB136 definition: the file cannot be read: No such file or directory"),
    ],
)
@pytest.mark.django_db
def test_bad_files_say_where_and_what_would_be_right(
    repository: Repository, prefix: str, name: str, content: bytes | str | None, said: str
) -> None:
    if content is None:
        (repository.folder / "shop/statemachines" / name).symlink_to("nowhere")
    else:
        repository.write(f"shop/statemachines/{name}", content)
    _, err, why = sync()
    assert said in err
    assert why.startswith("nothing was published: ")


@pytest.mark.django_db
def test_every_format_is_read_and_other_files_are_not(repository: Repository, engine: Engine) -> None:
    definition = yaml.load(REFUND.split("\n  Granted")[0] + "\n  Granted: {type: final}\n", yaml.BaseLoader)
    for name, ending, format in (("b", "json", "json"), ("c", "scxml", "scxml"), ("d", "xstate.json", "xstate")):
        repository.write(f"shop/statemachines/{name}.{ending}", dump({**definition, "id": name}, format)[0])
    repository.write(
        "shop/statemachines/e.ts", 'export const e = createMachine({id: "e", initial: "A", states: {A: {}}});'
    )
    for name in ("README.md", "_part.yaml", ".hidden.json", "drawing.mmd", "code.py"):
        repository.write(f"shop/statemachines/{name}", "nothing to read")
    repository.write("shop/statemachines/more/f.yaml", ORDER.replace("id: order", "id: f"))
    out, _, why = sync()
    assert why == ""
    assert sorted(engine.machines()) == ["b", "c", "d", "e", "f", "order"]
    assert "6 machines: 6 new" in out


@pytest.mark.django_db
def test_a_script_with_two_machines_is_a_warning(repository: Repository, prefix: str) -> None:
    made = 'createMachine({id: "%s", initial: "A", states: {A: {}}});\n'
    repository.write("shop/statemachines/two.ts", f"const a = {made % 'a'}const b = {made % 'b'}")
    assert "SB212 definition: the script makes 2 machines, and the first one is read" in sync("--dry-run")[1]
    assert sync("--strict")[2].startswith("nothing was published")


@pytest.mark.django_db
def test_drafts_are_made_in_place_of_versions_and_published_by_people(repository: Repository, engine: Engine) -> None:
    out = sync("--draft")[0]
    draft = Draft.objects.get()
    assert out == f"order  new  draft {draft.pk}  {FILE}\n1 machine: 1 new; no findings\n"
    assert engine.machines() == {}
    assert (draft.author, draft.base, draft.note) == ("repository", None, f"machine sync: {FILE}")
    assert (draft.format, draft.text) == ("yaml", ORDER)
    assert drafts.publish(Actor.console(), draft.pk).number == 1
    repository.write(FILE, WIDER)
    out = sync("--draft", "--commit", "4f2a9c1")[0]
    second = Draft.objects.get(state="open")
    assert out.startswith(f"order  changed  v1 → draft {second.pk}  {FILE}\n")
    assert (second.base, second.note) == (1, f"machine sync: {FILE} at 4f2a9c1")
    sync("--draft")
    assert Draft.objects.get(state="open").revision == 1  # the same text again
    repository.write(FILE, WIDER + "description: wider\n")
    sync("--draft")
    assert Draft.objects.get(state="open").revision == 2
    assert drafts.publish(Actor.console(), second.pk).notes == f"machine sync: {FILE}"
    assert sync("--draft")[0].startswith("order  unchanged  v2")
    assert sync("--check")[2] == ""


@pytest.mark.django_db
def test_drafts_are_not_made_by_a_check(repository: Repository, engine: Engine) -> None:
    assert "leave out one" in sync("--draft", "--check")[2]
    assert "goes with --draft" in sync("--commit", "x")[2]
    assert not Draft.objects.exists()
