"""The browser's half, in a real browser: against the real site, and against a socket that the test plays itself."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, sync_playwright

from machines.engine import Engine
from tests.chromium import find_chromium

from .service import Service

pytestmark = pytest.mark.browser

# Keeps what it is told, and every socket it opened; `lose` drops the next delta on its way in.
RECORDER = """
async ({ topic, dead }) => {
  const { Live } = await import("/static/signalbox/js/live/client.js");
  class Socket extends WebSocket {
    constructor(url) { super(dead ? url.replace(/:\\d+/, ":9") : url); window.sockets.push(this); }
    set onmessage(handler) {
      super.onmessage = (event) => {
        const frame = JSON.parse(event.data);
        window.frames_seen.push(frame);
        if (frame.type === "error") window.errors.push(frame);
        if (window.lose && frame.type === "delta") window.lose = false;
        else handler(event);
      };
    }
    send(text) { window.sent.push(JSON.parse(text)); super.send(text); }
  }
  Object.assign(window, { sockets: [], frames_seen: [], sent: [], lose: false, values: [], states: [], errors: [] });
  window.live = new Live({ url: location.origin.replace("http", "ws") + "/ws/live/", Socket });
  window.live.onstatus((status) => window.states.push(status));
  window.live.subscribe(topic, (value, meta) => window.values.push([value, meta]));
}
"""
OPEN = "values.at(-1)?.[0].counts?.Open"


PATIENCE = 60.0  # seconds; what is waited for takes milliseconds


def until(tab: Page, holds: str) -> None:
    """Waits until a condition holds in the page; says what the page saw where it never does."""
    end = time.monotonic() + PATIENCE
    while not tab.evaluate(f"Boolean({holds})"):
        if time.monotonic() > end:
            seen = tab.evaluate("({ states: states.slice(-5), errors, sent, values: values.slice(-2) })")
            pytest.fail(f"never came to hold: {holds}; the page saw {seen}")
        tab.wait_for_timeout(20)


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visitor(chromium, service: Service) -> Iterator[BrowserContext]:
    """A browser that is signed in."""
    context = chromium.new_context(bypass_csp=True)
    context.add_cookies([{"name": "sessionid", "value": service.cookie, "url": service.origin}])
    yield context
    context.close()


@pytest.fixture
def tab(visitor: BrowserContext, service: Service) -> Page:
    """An empty page of the site: these tests bring their own script."""
    tab = visitor.new_page()
    tab.goto(f"{service.origin}/healthz")
    return tab


@pytest.fixture
def watching(tab: Page, gate: Engine) -> Page:
    tab.evaluate(RECORDER, {"topic": "machine:gate", "dead": False})
    until(tab, f"{OPEN} === 0 && states.at(-1).state === 'live'")
    return tab


def test_a_value_changes_without_a_reload(watching: Page, gate: Engine) -> None:
    gate.fire("gate", "north", "open")
    until(watching, f"{OPEN} === 1")
    assert watching.evaluate("values.at(-1)[1].kind") == "delta"
    assert watching.evaluate("values.at(-1)[1].changed.counts") == {"Shut": 0, "Open": 1}
    assert watching.evaluate("values.at(-1)[0].version") == 1, "the whole value, merged"


def test_a_missed_number_leads_to_a_resync(watching: Page, gate: Engine) -> None:
    watching.evaluate("lose = true")
    gate.fire("gate", "north", "open")
    until(watching, "!lose")
    gate.fire("gate", "north", "shut")
    gate.fire("gate", "north", "open")
    until(watching, f"{OPEN} === 1")
    until(watching, "values.at(-1)[0].flow['1:t1'] === 2")
    assert watching.evaluate("sent.map((frame) => frame.type)") == ["subscribe", "resync"]


def test_after_a_restart_of_the_site_it_comes_back_by_itself(watching: Page, gate: Engine, service: Service) -> None:
    service.stop()
    until(watching, "states.at(-1).state === 'offline'")
    gate.fire("gate", "north", "open")
    service.start()
    until(watching, f"{OPEN} === 1")
    until(watching, "states.at(-1).state === 'live'")


def test_without_a_socket_it_polls(tab: Page, gate: Engine) -> None:
    tab.evaluate(RECORDER, {"topic": "machine:gate", "dead": True})
    until(tab, f"{OPEN} === 0 && states.at(-1).state === 'polling'")
    gate.fire("gate", "north", "open")
    until(tab, f"{OPEN} === 1")
    assert tab.evaluate("sockets.length") >= 2, "it goes on trying for a socket"


def test_a_hidden_tab_draws_late_and_at_once_when_seen(watching: Page, gate: Engine) -> None:
    hide(watching, True)
    gate.fire("gate", "north", "open")
    until(watching, "frames_seen.at(-1).data?.counts?.Open === 1")
    assert watching.evaluate(OPEN) == 0
    hide(watching, False)
    assert watching.evaluate(OPEN) == 1


def hide(tab: Page, hidden: bool) -> None:
    tab.evaluate(
        """(hidden) => {
          Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_signed_out_it_stops_and_says_so(chromium, service: Service, gate: Engine) -> None:
    context = chromium.new_context(bypass_csp=True)
    tab = context.new_page()
    tab.goto(f"{service.origin}/healthz")
    tab.evaluate(RECORDER, {"topic": "machine:gate", "dead": False})
    until(tab, "states.at(-1).reason === 'signed out'")
    assert tab.evaluate("[states.at(-1).state, sockets.length]") == ["offline", 1]
    context.close()


def test_a_refused_topic_is_an_error_and_the_others_go_on(watching: Page, gate: Engine) -> None:
    watching.evaluate("live.subscribe('machine:9lives', () => {})")
    until(watching, "errors.some((error) => error.topic === 'machine:9lives' && error.code === 'SB602')")
    gate.fire("gate", "north", "open")
    until(watching, f"{OPEN} === 1")


def test_two_listeners_share_a_subscription_and_the_last_to_leave_ends_it(watching: Page) -> None:
    watching.evaluate(
        """() => {
          window.second = [];
          window.stops = [1, 2].map(() => live.subscribe("overview", (value) => second.push(value)));
        }"""
    )
    until(watching, "second.length >= 2")
    watching.evaluate("stops[0]()")
    watching.evaluate("live.subscribe('overview', (value) => second.push(value))")
    assert watching.evaluate("second.length") >= 3, "a value that is there is delivered at once"
    said = watching.evaluate("sent.filter((frame) => frame.topic === 'overview').map((frame) => frame.type)")
    assert said == ["subscribe"]


# Against a socket that the test plays itself: `say(frame)` is the server.
PLAYED = """
async () => {
  const { Live } = await import("/static/signalbox/js/live/client.js");
  class Socket {
    constructor() { this.readyState = 0; this.sent = []; window.sockets.push(this); }
    send(text) { this.sent.push(JSON.parse(text)); }
    close() { this.readyState = 3; }
  }
  Object.assign(window, { sockets: [], values: [], states: [] });
  window.live = new Live({ url: "ws://nowhere", Socket, fetch: () => Promise.reject(new Error("no network")) });
  window.live.onstatus((status) => window.states.push(status));
  window.live.subscribe("t", (value, meta) => window.values.push(value));
  window.accept = (socket = sockets.at(-1)) => { socket.readyState = 1; socket.onopen(); };
  window.say = (frame) => sockets.at(-1).onmessage({ data: JSON.stringify({ topic: "t", at: 1, ...frame }) });
  window.end = (code) => sockets.at(-1).onclose({ code });
}
"""


@pytest.fixture
def empty(chromium, lasting: Service) -> Iterator[Page]:
    context = chromium.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(f"{lasting.origin}/healthz")
    yield page
    context.close()


@pytest.fixture
def played(empty: Page) -> Page:
    empty.clock.install()
    empty.evaluate(PLAYED)
    empty.evaluate("accept()")
    return empty


def test_deltas_merge_and_null_removes(played: Page) -> None:
    played.evaluate("say({type: 'snapshot', epoch: 'e', seq: 1, data: {a: {x: 1, y: [1]}, b: 2}})")
    played.evaluate("say({type: 'delta', epoch: 'e', seq: 2, data: {a: {x: null, y: [2, 3], z: {}}, c: 0}})")
    assert played.evaluate("values.at(-1)") == {"a": {"y": [2, 3], "z": {}}, "b": 2, "c": 0}
    assert played.evaluate("values[0]") == {"a": {"x": 1, "y": [1]}, "b": 2}


@pytest.mark.parametrize("frame", ["epoch: 'e', seq: 3", "epoch: 'e', seq: 1", "epoch: 'f', seq: 2"])
def test_a_number_or_epoch_that_does_not_follow_is_not_merged(played: Page, frame: str) -> None:
    played.evaluate("say({type: 'snapshot', epoch: 'e', seq: 1, data: {a: 1}})")
    played.evaluate(f"say({{type: 'delta', {frame}, data: {{a: 2}}}})")
    played.evaluate(f"say({{type: 'delta', {frame}, data: {{a: 3}}}})")
    assert played.evaluate("values") == [{"a": 1}]
    assert played.evaluate("sockets[0].sent.map((f) => f.type)") == ["subscribe", "resync"], "asked once"
    played.evaluate("say({type: 'snapshot', epoch: 'f', seq: 9, data: {a: 4}})")
    played.evaluate("say({type: 'delta', epoch: 'f', seq: 10, data: {a: 5}})")
    assert played.evaluate("values.at(-1)") == {"a": 5}


def test_a_page_is_live_once_its_snapshot_has_come(played: Page) -> None:
    played.evaluate("say({type: 'status', state: 'live', epoch: 'e', every: 2000})")
    assert played.evaluate("states.at(-1).state") == "offline"
    played.evaluate("say({type: 'snapshot', epoch: 'e', seq: 1, data: {a: 1}})")
    assert played.evaluate("states.at(-1).state") == "live"


def test_frozen_it_shows_nothing_counts_what_waits_and_shows_it_afterwards(played: Page) -> None:
    played.evaluate("say({type: 'snapshot', epoch: 'e', seq: 1, data: {a: 1}})")
    played.evaluate("say({type: 'status', state: 'live', epoch: 'e', every: 2000})")
    played.evaluate("live.freeze(true)")
    played.evaluate("say({type: 'delta', epoch: 'e', seq: 2, data: {a: 2}})")
    played.evaluate("say({type: 'delta', epoch: 'e', seq: 3, data: {a: 3}})")
    played.evaluate("say({type: 'snapshot', epoch: 'e', seq: 4, data: {a: 3}})")  # nothing new
    for _ in range(3):
        played.clock.run_for(2000)
        played.evaluate("say({type: 'status', state: 'live', epoch: 'e', every: 2000})")
    assert played.evaluate("values.at(-1)") == {"a": 1}
    assert played.evaluate("states.at(-1).state") == "frozen"
    assert played.evaluate("states.at(-1).age") in (5, 6)
    assert played.evaluate("live.store.waiting") == 2
    played.evaluate("live.freeze(false)")
    assert played.evaluate("values") == [{"a": 1}, {"a": 3}]
    assert played.evaluate("live.store.waiting") == 0
    assert played.evaluate("sockets[0].sent.map((f) => f.type)") == ["subscribe"]
    assert played.evaluate("[states.at(-1).state, states.at(-1).age]") == ["live", 0]


def test_a_socket_that_opens_while_it_is_frozen_counts_its_snapshot_as_one_change(played: Page) -> None:
    played.evaluate("say({type: 'snapshot', epoch: 'e', seq: 1, data: {a: 1}})")
    played.evaluate("live.freeze(true)")
    played.evaluate("end(1006)")
    played.clock.run_for(1_000)  # the longest first wait
    assert played.evaluate("sockets.length") == 2
    played.evaluate("accept()")
    assert played.evaluate("sockets.at(-1).sent") == [{"type": "subscribe", "topic": "t"}]
    played.evaluate("say({type: 'snapshot', epoch: 'f', seq: 7, data: {a: 7}})")
    assert played.evaluate("[values.length, live.store.waiting]") == [1, 1]
    played.evaluate("live.freeze(false)")
    assert played.evaluate("values.at(-1)") == {"a": 7}


def test_whoever_asked_for_fewer_changes_gets_them_every_five_seconds(empty: Page) -> None:
    empty.clock.install()
    empty.evaluate(PLAYED.replace("new Live({", "new Live({ calm: true,"))
    empty.evaluate("accept()")
    for number in range(4):
        empty.evaluate(f"say({{type: 'snapshot', epoch: 'e', seq: {number + 1}, data: {{a: {number}}}}})")
    assert empty.evaluate("values") == []
    empty.clock.run_for(5_100)
    assert empty.evaluate("values") == [{"a": 3}]


def test_redis_away_is_stale_and_the_age_grows(played: Page) -> None:
    played.evaluate("say({type: 'snapshot', epoch: 'e', seq: 1, data: {a: 1}})")
    played.evaluate("say({type: 'status', state: 'live', epoch: 'e', every: 2000})")
    assert played.evaluate("states.at(-1)") == {"state": "live", "age": 0, "reason": ""}
    played.evaluate("say({type: 'status', state: 'stale', epoch: 'e', every: 5000})")
    played.clock.run_for(4500)
    assert played.evaluate("states.at(-1).state") == "stale"
    assert played.evaluate("states.at(-1).age") in (3, 4)
    played.evaluate("say({type: 'status', state: 'live', epoch: 'e', every: 2000})")
    assert played.evaluate("[states.at(-1).state, states.at(-1).age]") == ["live", 0]


def test_silence_ends_a_half_open_socket_and_another_is_tried(played: Page) -> None:
    played.evaluate("say({type: 'status', state: 'live', epoch: 'e', every: 2000})")
    played.clock.run_for(6500)
    assert played.evaluate("sockets[0].readyState") == 3
    assert played.evaluate("states.at(-1).state") in ("offline", "stale")
    played.clock.run_for(1000)
    assert played.evaluate("sockets.length") == 2
    played.evaluate("accept()")
    assert played.evaluate("sockets[1].sent") == [{"type": "subscribe", "topic": "t"}]


def test_attempts_are_spread_and_end_when_signed_out(played: Page) -> None:
    for _ in range(5):
        played.evaluate("end(1006)")
        played.clock.run_for(31_000)
    assert 5 <= played.evaluate("sockets.length") <= 20
    assert played.evaluate("states.at(-1).state") == "offline"
    count = played.evaluate("sockets.length")
    while played.evaluate("sockets.length") == count:
        played.clock.run_for(100)
    played.evaluate("end(4401)")
    played.clock.run_for(120_000)
    assert played.evaluate("sockets.length") == count + 1
    assert played.evaluate("states.at(-1).reason") == "signed out"


def test_the_wait_is_full_jitter_below_a_ceiling(empty: Page) -> None:
    waits = empty.evaluate(
        """async () => {
          const { fullJitter } = await import("/static/signalbox/js/live/backoff.js");
          return [0, 1, 2, 3, 50].map((attempt) => [fullJitter(attempt, () => 0), fullJitter(attempt, () => 1)]);
        }"""
    )
    assert waits == [[0, 500], [0, 1000], [0, 2000], [0, 4000], [0, 30000]]
