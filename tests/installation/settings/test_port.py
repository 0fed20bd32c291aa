"""A port is known to be ours before anything is started on it."""

import asyncio
import socket

import pytest

from dashboard.serving import server


@pytest.fixture
def busy():
    with server.listen("127.0.0.1", 0) as listener:
        yield listener.getsockname()[1]


def test_a_busy_port_is_refused_with_its_number(busy):
    with pytest.raises(server.PortTaken, match=f"port {busy} cannot be had: Address already in use") as caught:
        server.listen("127.0.0.1", busy)
    assert caught.value.port == busy


def test_the_next_free_one_is_taken_when_that_is_allowed(busy):
    with server.listen("127.0.0.1", busy, tries=20) as listener:
        assert busy < listener.getsockname()[1] <= busy + 20


def test_port_0_is_any_free_one():
    with server.listen("127.0.0.1", 0, tries=20) as listener:
        assert listener.getsockname()[1] > 0


def test_an_address_that_is_not_ours_is_a_clear_error():
    with pytest.raises(server.PortTaken, match="Cannot assign requested address"):
        server.listen("192.0.2.1", 8000, tries=20)


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]")])
def test_the_address_is_one_a_browser_can_open(host, shown):
    with server.listen(host, 0) as listener:
        assert server.address(listener) == f"http://{shown}:{listener.getsockname()[1]}/"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_no_part_of_an_answer_waits_for_the_one_before_to_be_acknowledged(host):
    async def served() -> int:
        with server.listen(host, 0) as listener:
            met: asyncio.Future[int] = asyncio.get_running_loop().create_future()

            async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                met.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                writer.close()

            async with await asyncio.start_server(meet, sock=listener):
                _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
                writer.close()
                return await met

    assert asyncio.run(served()) == 1
