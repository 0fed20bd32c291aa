#!/usr/bin/env python
"""Django's command line for Signalbox."""

import os
import sys


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        settings.INSTALLED_APPS  # noqa: B018  reads the settings now, so that a bad value ends here and not in a traceback
    except ImproperlyConfigured as error:
        sys.stderr.write(f"signalbox: {error}\n")
        return 2
    execute_from_command_line(sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
