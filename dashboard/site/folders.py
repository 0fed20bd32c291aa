"""Where the product's templates, static files, sample definitions and own data are.

In a checkout templates and static files are at the top level; an installed package has them below ``dashboard``, where
Django finds them by the app. Own data of a checkout stays in the checkout, that of an installed package in the folder
in which it is used.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
IS_INSTALLED = (PACKAGE / "templates").is_dir()
"""Whether this is an installed package, and not a checkout."""

TEMPLATES = (PACKAGE if IS_INSTALLED else ROOT) / "templates"
STATIC = (PACKAGE if IS_INSTALLED else ROOT) / "static"
SAMPLES = PACKAGE / "examples" / "definitions" if IS_INSTALLED else ROOT / "examples"


def find_home() -> Path:
    """Return the folder of an installation without real servers: ``.signalbox``."""
    return (Path.cwd() if IS_INSTALLED else ROOT) / ".signalbox"
