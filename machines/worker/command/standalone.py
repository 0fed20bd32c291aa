"""``signalbox worker`` without Django: handlers of modules that are named, timers, messages and expired leases.

What needs the database of a control room (statistics, webhooks, bulk actions, the archive and with it retention) is
done by a worker with Django, which may run beside this one on the same Redis.
"""

from __future__ import annotations

import logging
import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from machines.conf.table import REDIS, SETTINGS
from machines.connections import load_codec, use_engine
from machines.engine import Engine
from machines.engine.errors import SignalboxError
from machines.engine.keys import PREFIX
from machines.patterns import Locks
from machines.worker.options import Options
from machines.worker.registry import HandlerError, Registry, import_handlers
from machines.worker.supervisor import Supervisor

from ..duties.engine_duties import make_engine_duties
from ..duties.exclusive_duties import Scheduler
from .command import add_arguments, list_arguments, read_names, read_options, run_worker
from .command_line import list_restart_command

BUILTIN = ("machines.mapreduce.handlers",)


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the worker that these arguments describe; return the exit code."""
    parser = _make_parser(environment)
    given = vars(parser.parse_args(arguments))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        options = read_options(given, _read(environment, "LEASE_HELPER"), int(_read(environment, "JOB_LOGS")))
        codec = load_codec(environment.get("SIGNALBOX_CODEC", ""))
        engine = Engine.from_url(given["url"], prefix=given["prefix"], codec=codec)
    except (ValueError, ImportError, AttributeError, SignalboxError) as error:
        parser.error(str(error))
    with use_engine(engine):  # before handlers are imported: they may ask for it
        try:
            registry = import_handlers((*BUILTIN, *read_names(given["handlers"])))
        except HandlerError as error:
            parser.error(str(error))
        return _run(engine, registry, options, given)


def _run(engine: Engine, registry: Registry, options: Options, given: Mapping[str, Any]) -> int:
    if given["processes"] > 1:
        # An address may hold a password, which command lines would show to every user of the machine.
        os.environ |= {"REDIS_URL": given["url"], "SIGNALBOX_PREFIX": given["prefix"]}
        command = list_restart_command("worker", *list_arguments(options, given["handlers"]))
        return Supervisor(command, given["processes"], grace=options.grace).run(sys.stdout)
    scheduler = _make_scheduler(engine, options)
    run_worker(
        engine, registry, options, url=given["url"], scheduler=scheduler, duties=scheduler.duties, write=_write
    )  # fmt: skip
    return 0


def _make_parser(environment: Mapping[str, str]) -> ArgumentParser:
    parser = ArgumentParser(
        prog="signalbox worker", description="Takes jobs from the machines' queues and runs their handlers."
    )
    parser.add_argument(
        "--url",
        default=environment.get("REDIS_URL") or REDIS,
        help=f"the Redis of the engine (default: REDIS_URL, else {REDIS})",
    )
    parser.add_argument(
        "--prefix",
        default=environment.get("SIGNALBOX_PREFIX") or PREFIX,
        help=f"of all keys (default: SIGNALBOX_PREFIX, else {PREFIX})",
    )
    add_arguments(parser)
    return parser


def _read(environment: Mapping[str, str], name: str) -> float:
    setting = SETTINGS[name]
    text = environment.get(setting.variable, "")
    return float(setting.kind.parse(setting.variable, text) if text else setting.default)


def _make_scheduler(engine: Engine, options: Options) -> Scheduler:
    """Make the scheduler of exclusive duties. A worker that ends with its work leaves them to workers that stay."""
    duties = {} if options.once or options.drain else make_engine_duties(engine, options)
    return Scheduler(Locks(engine.client, engine.keys.prefix), duties, options.id)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
