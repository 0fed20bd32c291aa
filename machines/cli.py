"""The command ``signalbox``, and what it shares with ``manage.py``.

It runs management commands under the settings that DJANGO_SETTINGS_MODULE names, else under the product's own. Where
Django is not installed, or handlers are named, ``signalbox worker`` runs without it.
"""

import gc
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__" and str(ROOT) not in sys.path:  # run as a file, from a checkout
    sys.path.insert(0, str(ROOT))

import machines  # noqa: E402
from machines.conf import extras  # noqa: E402

SETTINGS = "DJANGO_SETTINGS_MODULE"
OWN_SETTINGS = "dashboard.settings"
TEMPLATE = "examples/project_template"
USAGE = """\
signalbox: state machines inside Redis, and a control room for them.

  signalbox demo              a live control room with sample machines, on a server of its own    signalbox[demo]
  signalbox serve             the control room: pages, live view, API                             signalbox[dashboard]
  signalbox worker            takes jobs and runs their handlers                                  (no extra)
  signalbox library load      loads the functions library onto Redis, for the deployment account  (no extra)
  signalbox machine ...       checks, publishes, imports, exports and moves machines              signalbox[dashboard]
  signalbox migrate           makes or updates the tables of the control room                     signalbox[dashboard]
  signalbox createsuperuser   makes an account                                                    signalbox[dashboard]
  signalbox check             looks for what is missing                                           signalbox[dashboard]
  signalbox template          where the template for django-admin startproject is                 (no extra)

  signalbox help COMMAND      the options of a command; every management command of Django works, too
  signalbox --version

  signalbox worker --handlers app.tasks --url redis://...    a worker without Django

Settings are those that DJANGO_SETTINGS_MODULE names, else the product's own, which read the environment
(REDIS_URL, DATABASE_URL, ...) and keep files in ./.signalbox.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console script; return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _take_common_options(words)
    if not words or words[0] in ("-h", "--help") or words == ["help"]:
        sys.stdout.write(USAGE)
        return 0
    if words[0] in ("-V", "--version", "version"):
        sys.stdout.write(f"signalbox {machines.__version__}\n")
        return 0
    if words == ["template"]:
        packaged = ROOT / "dashboard" / "demo" / TEMPLATE
        sys.stdout.write(f"{packaged if packaged.is_dir() else ROOT / TEMPLATE}\n")
        return 0
    folder = os.getcwd()
    if folder not in sys.path:  # modules of the project; last, so that a folder named dashboard hides nothing of ours
        sys.path.append(folder)
    if words[0] == "worker" and _is_standalone(words):
        from machines.worker.command import command

        return command.run(words[1:], os.environ)
    if words[0] == "library":
        from machines.management import library_command

        if _is_standalone(words) or (SETTINGS not in os.environ and os.environ.keys() & set(library_command.URLS)):
            return library_command.run(words[1:], os.environ)
    return run_management(["signalbox", *words])


def run_management(argv: list[str]) -> int:
    """Run a management command of Django; return the exit code. ``argv``: the program's name, then its words."""
    _take_common_options(argv[2:])
    os.environ.setdefault(SETTINGS, OWN_SETTINGS)
    try:
        if argv[1:2] == ["demo"] and not {"REDIS_URL", "REDIS_URL_FILE"} & os.environ.keys():  # it starts a server
            extras.require("the demo", "django", "dashboard", "demo")
        if os.environ[SETTINGS] == OWN_SETTINGS:
            extras.require("the control room", "django", "dashboard")
        extras.require("this command", "django")
        return _execute(argv)
    except extras.MissingExtra as error:
        return _refuse(str(error))
    except ModuleNotFoundError as error:
        extra = extras.find_extra(error.name)
        if extra is None:
            raise
        return _refuse(extras.explain("this command", extra, [error.name or extra]))


def _take_common_options(words: Sequence[str]) -> None:
    """Take ``--settings`` and ``--pythonpath`` as Django does, before anything reads the settings."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("--settings", "--pythonpath"):
        parser.add_argument(name, nargs="?")
    given, _ = parser.parse_known_args(words)
    if given.settings:
        os.environ[SETTINGS] = given.settings
    if given.pythonpath and given.pythonpath not in sys.path:
        sys.path.insert(0, given.pythonpath)


def _execute(argv: list[str]) -> int:
    gc.disable()  # nothing that is loaded at the start is garbage, and looking takes a seventh of the start
    import django
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        settings.INSTALLED_APPS  # noqa: B018  reads the settings now, so that a bad value ends here and not in a traceback
        django.setup()
    except ImproperlyConfigured as error:
        return _refuse(str(error))
    finally:
        gc.freeze()
        gc.enable()
    execute_from_command_line(argv)
    return 0


def _is_standalone(words: Sequence[str]) -> bool:
    """Tell whether a worker runs without Django: where that is not installed, or what it serves is all in the words."""
    if find_spec("django") is None:
        return True
    named = any(word.partition("=")[0] in ("--handlers", "--url") for word in words)
    return named and SETTINGS not in os.environ


def _refuse(message: str) -> int:
    sys.stderr.write(f"signalbox: {message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
