"""What ``manage.py worker`` may be told."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from machines.management.commands.worker import Command
from machines.worker.command.command import list_arguments, read_options
from machines.worker.options import Options
from tests.cases import for_each


@for_each(
    "given, complaint",
    [
        ({"queues": "1st"}, "--queues: the name '1st'"),
        ({"queues": "a b/c"}, "--queues: the name 'a b/c' begins with no machine's name"),
        ({"queues": "one/"}, "--queues: the name 'one/'"),
        ({"concurrency": 0}, "concurrency must be 1 to 1000, not 0"),
        ({"prefetch": -1}, "prefetch must be 0 to 1000, not -1"),
        ({"queues": " , "}, "names no queue"),
        ({"grace": -1.0}, "grace must be 0 to 86400 seconds, not -1"),
        ({"grace": float("nan")}, "grace must be 0 to 86400 seconds, not nan"),
        ({"grace": float("inf")}, "grace must be 0 to 86400 seconds, not inf"),
        ({"processes": 0}, "processes must be 1 to 256, not 0"),
        ({"drain": True, "once": True}, "choose one of drain and once"),
    ],
)
def test_what_makes_no_sense_is_refused_at_the_start(given, complaint):
    with pytest.raises(CommandError, match=complaint):
        call_command("worker", **given)


@pytest.mark.parametrize(
    "options",
    [
        Options(id="w1"),
        Options(id="w1", queues=("a", "one/b"), concurrency=7, prefetch=0, grace=1.5),
        Options(id="w1", drain=True),
        Options(id="w1", once=True),
    ],
)
def test_a_process_of_several_is_told_what_all_were_told(options):
    parser = Command().create_parser("manage.py", "worker")
    given = vars(parser.parse_args(list_arguments(options)))
    found = read_options(given, options.helper_limit)
    assert {name: getattr(found, name) for name in ("queues", "concurrency", "prefetch", "grace", "drain", "once")} == {
        name: getattr(options, name) for name in ("queues", "concurrency", "prefetch", "grace", "drain", "once")
    }
