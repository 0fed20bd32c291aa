"""The browser's half of the protocol, read as text: which messages it handles and sends."""

from __future__ import annotations

import re
from pathlib import Path

from dashboard.live.messages import CloseCode, ErrorCode
from tests.docs.live_protocol import CLIENT, SERVER

FOLDER = Path(__file__).resolve().parents[2] / "static" / "signalbox" / "js" / "live"
SOCKET = (FOLDER / "client.js").read_text(encoding="utf-8")
CONNECTION = (FOLDER / "socket.js").read_text(encoding="utf-8")


def test_it_has_a_handler_for_each_message_of_the_server_and_no_other() -> None:
    table = re.search(r"const handlers = \{(.*?)\n\};", SOCKET, re.DOTALL)
    assert table
    assert set(re.findall(r"^  (\w+):", table.group(1), re.MULTILINE)) == set(SERVER)


def test_it_sends_the_commands_there_are_and_no_other() -> None:
    assert set(re.findall(r'\.send\("(\w+)"', SOCKET)) == set(CLIENT)


def test_it_knows_the_codes_by_their_numbers() -> None:
    numbers = {int(number) for number in re.findall(r"\b(4\d{3})\b", CONNECTION)}
    assert numbers <= set(CloseCode)
    assert {CloseCode.SIGNED_OUT, CloseCode.BAD_ORIGIN} <= numbers
    assert set(re.findall(r'"(SB\d+)"', SOCKET)) <= set(ErrorCode)
