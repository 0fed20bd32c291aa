"""The command line of a worker, shared by ``manage.py worker`` and by ``signalbox worker`` without Django."""

import gc
import logging
import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import machines
from machines.conf.table import REDIS, SETTINGS
from machines.connections import load_codec, use_engine
from machines.engine import Engine, arguments, errors, limits
from machines.engine.errors import SignalboxError
from machines.engine.keys import PREFIX
from machines.patterns import Locks
from machines.worker.execution.completer import OnFailure, ignore_failure
from machines.worker.launcher import Launcher
from machines.worker.options import EXHAUSTED, MAX_CONCURRENCY, MAX_PREFETCH, MAX_PROCESSES, Options
from machines.worker.registry import HandlerError, Registry, import_handlers
from machines.worker.supervisor import Supervisor

from ..duties.engine_duties import make_engine_duties
from ..duties.exclusive_duties import Duty, Scheduler
from .command_line import list_restart_command

BUILTIN = ("machines.mapreduce.handlers",)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the options of every worker."""
    parser.add_argument(
        "--queues", default="", metavar="A,B", help="queues to serve, each as queue or machine/queue (default: all)"
    )
    parser.add_argument(
        "--concurrency", type=int, default=4, metavar="N", help=f"concurrent jobs, 1 to {MAX_CONCURRENCY}"
    )
    parser.add_argument(
        "--prefetch",
        type=int,
        metavar="N",
        help=f"jobs prefetched beyond that, 0 to {MAX_PREFETCH} (default: as many as finish in 50 ms, of groups 20)",
    )
    parser.add_argument("--processes", type=int, default=1, metavar="N", help=f"worker processes, 1 to {MAX_PROCESSES}")
    parser.add_argument(
        "--grace", type=float, default=20.0, metavar="S", help="seconds running jobs may take after SIGTERM"
    )
    parser.add_argument("--drain", action="store_true", help="stop when the queues are empty")
    parser.add_argument("--once", action="store_true", help="stop after one batch")
    parser.add_argument(
        "--handlers",
        default="",
        metavar="A,B",
        help="modules that register handlers, as for an import (with Django: beside each installed app's handlers.py)",
    )


def read_options(given: Mapping[str, Any], helper_limit: float, job_logs: int = 0) -> Options:
    """Make options of the parsed arguments. Raises ValueError for what makes no sense.

    ``helper_limit``: seconds for which a helper renews the leases of a worker that hangs. ``job_logs``: KiB.
    """
    queues = read_names(given["queues"])
    if given["queues"].strip() and not queues:
        raise ValueError(f"--queues {given['queues']!r} names no queue; leave it out to serve all")
    for queue in queues:
        if (why := _explain_misnamed(queue)) is not None:
            raise ValueError(f"--queues: the name {queue!r} {why}")
    if not 1 <= given["processes"] <= MAX_PROCESSES:
        raise ValueError(f"processes must be 1 to {MAX_PROCESSES}, not {given['processes']}")
    return Options(
        queues=queues,
        concurrency=given["concurrency"],
        prefetch=given["prefetch"],
        grace=given["grace"],
        helper_limit=helper_limit,
        job_logs=job_logs,
        drain=given["drain"],
        once=given["once"],
    )


def read_names(text: str) -> tuple[str, ...]:
    """Split ``a, b``."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def list_arguments(options: Options, handlers: str = "") -> list[str]:
    """Return the same options as words of a command line, for one process of several."""
    found = ["--concurrency", str(options.concurrency), "--grace", str(options.grace)]
    if options.queues:
        found += ["--queues", ",".join(options.queues)]
    if options.prefetch is not None:
        found += ["--prefetch", str(options.prefetch)]
    if handlers:
        found += ["--handlers", handlers]
    return found + [flag for flag, given in (("--drain", options.drain), ("--once", options.once)) if given]


def run_worker(  # noqa: PLR0913
    engine: Engine,
    registry: Registry,
    options: Options,
    *,
    url: str,
    scheduler: Scheduler,
    duties: Mapping[str, Duty],
    write: Callable[[str], object],
    on_failure: OnFailure = ignore_failure,
) -> None:
    """Work until a signal, an order or the end of the queues. ``url``: of Redis, for the helper that renews leases.

    Ends the process with the code ``EXHAUSTED`` if too many handlers hang.
    """
    engine = engine.at_once()  # the loops of a worker repeat by themselves, and end when they are asked to
    gc.collect()
    gc.freeze()  # what is loaded by now stays: each collection would look at all of it again
    launcher = Launcher(
        engine, registry, options, version=machines.__version__, url=url, duties=duties, on_failure=on_failure
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: launcher.stop())
    for number in (signal.SIGUSR1, signal.SIGTSTP):
        signal.signal(number, lambda *_: launcher.quiet())
    handlers = ", ".join(registry) or "none: timers, messages and expired leases only"
    write(f"worker {options.id}: {options.concurrency} at a time, handlers {handlers}")
    launcher.run()
    scheduler.leave()
    write(f"worker {options.id}: {'exhausted' if launcher.is_exhausted else 'stopped'}, {launcher.summary()}")
    if launcher.is_exhausted:
        logging.shutdown()
        sys.stdout.flush()
        os._exit(EXHAUSTED)  # Python would wait for threads of pools that handlers have started, and those may hang


def _explain_misnamed(name: str) -> str | None:
    """Say why this is neither a queue nor machine/queue; None when it is."""
    machine, slash, queue = name.rpartition("/")
    if slash:
        try:
            arguments.check_machine(machine)
        except errors.BadInput as error:
            return f"begins with no machine's name: {error}"
    return limits.check_queue_name(queue)


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
