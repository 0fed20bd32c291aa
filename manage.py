#!/usr/bin/env python
"""Django's command line for Signalbox, from a checkout. An installed package has ``signalbox`` in its place."""

import sys

from machines.cli import run_management

if __name__ == "__main__":
    sys.exit(run_management(sys.argv))
