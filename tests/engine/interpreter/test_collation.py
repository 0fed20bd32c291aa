"""The order of texts is that of their code points, whatever locale the server was started in."""

import shutil
import subprocess

import pytest

from machines.conf.server import Server
from machines.engine import Engine
from tests.engine.builders import NOW, door, evaluate, publish

pytestmark = pytest.mark.redis

NAMES = ["a", "B", "b", "A", "é", "Z", "z", "_", "a b", "ab", "1"]


@pytest.fixture(scope="module")
def locale(tmp_path_factory):
    """A folder with an English locale in it, in which a comes before B."""
    folder = tmp_path_factory.mktemp("locale")
    if shutil.which("localedef") is None:
        pytest.skip("localedef is missing here, which makes the locale this looks at")
    made = subprocess.run(
        ["localedef", "-i", "en_US", "-f", "UTF-8", str(folder / "en_US.UTF-8")], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("the sources of the locale en_US are missing here (Debian: locales)")
    return folder


@pytest.fixture
def english(locale, monkeypatch, tmp_path, program_of_this_run):
    monkeypatch.setenv("LOCPATH", str(locale))
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    with Server(tmp_path / "server", program=program_of_this_run, persistent=False) as server:
        engine = Engine.from_url(server.url)
        yield engine
        engine.client.close()


def test_the_server_does_sort_by_the_locale_when_lua_is_asked(english):
    """Without this the tests below would look at nothing."""
    if english.client.eval("return 'a' < 'B' and 1 or 0", 0) == 0:
        pytest.skip("this server's Lua does not ask the locale")


def test_expressions_compare_and_sort_by_code_points(english):
    assert evaluate(
        english, "['a' < 'B', 'B' < 'a', 'Z' < 'a', 'z' < 'é', min(event.l), sorted(event.l)]", {"l": NAMES}
    ) == [
        False,
        True,
        True,
        True,
        "1",
        sorted(NAMES),
    ]
    assert evaluate(english, "keys(event.o)", {"o": dict.fromkeys(NAMES, 1)}) == sorted(NAMES)


@pytest.mark.parametrize("newest", [False, True])
def test_pages_of_one_moment_miss_nothing_and_repeat_nothing(english, newest):
    publish(english, door())
    for name in NAMES:
        english.create("door", name, now=NOW)
    found, cursor = [], None
    while True:
        page = english.find("door", state="Shut", limit=2, cursor=cursor, newest=newest)
        found += [instance.id for instance in page]
        if (cursor := page.cursor) is None:
            break
    assert found == sorted(NAMES, reverse=newest)
