"""The site on a listener it inherits (its descriptor is the argument), for passwords as the tests hash them."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"

from django.conf import settings

from dashboard.serving import server

settings.ROOT_URLCONF = "tests.browser.components.urls"
settings.TEMPLATES[0]["DIRS"].append(Path(__file__).with_name("components") / "templates")
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
server.run(socket.socket(fileno=int(sys.argv[1])))
