"""``manage.py check`` in projects that lack something: it names everything at once, and its hints lead to a room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import ROOT, run
from .test_commands import MANY

pytestmark = pytest.mark.faults  # real processes
BARE = """
from shop.settings import *
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "guardian", "machines", "dashboard", "shop"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
STATICFILES_DIRS = []
ROOT_URLCONF = "bare_urls"
LOGIN_URL = "/nowhere/"
USE_THOUSAND_SEPARATOR = True
SIGNALBOX = SIGNALBOX | {"PREFX": "x:", "THREADS": 1}
SIGNALBOX_ARCHIVE = "none"
del ANONYMOUS_USER_NAME, ASGI_APPLICATION
"""
STARTED = ["django.contrib.sessions", "django.contrib.messages", "django.contrib.staticfiles"]


@pytest.fixture
def project(shop: dict[str, str], tmp_path: Path):
    """Writes modules of a project, and runs a command of Django, or Python with other words, with its settings."""

    def written(command: str | tuple[str, ...], code: int = 0, **modules: str) -> str:
        for name, text in modules.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        environment = shop | {"DJANGO_SETTINGS_MODULE": "bare", "PYTHONPATH": f"{tmp_path}:{shop['PYTHONPATH']}"}
        return run(environment, *(("-m", "django", command) if isinstance(command, str) else command), code=code)

    return written


def ids(said: str) -> set[str]:
    return set(re.findall(r"signalbox\.([EWI]\d+)", said))


def test_the_shop_lacks_nothing(shop: dict[str, str]):
    checked, made, _ = run(shop, "-c", MANY, "check", "makemigrations --check --dry-run").split("<end>")
    assert (ids(checked), checked.split()[-1]) == (set(), "0")
    assert "No changes" in made


def test_models_that_cannot_load_are_told_with_all_else_that_is_missing(project):
    bare = BARE.replace('"guardian", ', "")
    said = project("check", code=1, bare=bare, bare_urls="urlpatterns = []")
    assert "Signalbox cannot start in this project" in said
    assert "INSTALLED_APPS lacks guardian" in said
    assert ids(said) == {"E017", "E018", "E019", "W020", "W025"}


def test_everything_that_is_missing_is_named_at_once_and_the_hints_lead_to_a_working_room(project):
    """Apply the hints as text, and nothing else."""
    bare = BARE.replace('"guardian", ', f'"guardian", *{STARTED!r}, ')
    said = project("check", code=1, bare=bare, bare_urls="urlpatterns = []")
    assert ids(said) == {"E016", "E018", "E019", "W020", "E021", "E022", "W024", "W025", "W026"}
    assert re.search(r"MIDDLEWARE lacks .*Session.*, .*Csrf.*, .*Authentication.*, .*Message", said)
    assert said.count("E019") == 4, "each context processor, and the template"
    assert "did you mean PREFIX?" in said
    assert 'SIGNALBOX["THREADS"]=1 is out of range' in said
    assert 'Write SIGNALBOX = {"ARCHIVE": ...}.' in said
    [order] = re.findall(r"Add what is missing to MIDDLEWARE. The order is (.*)[.]", said)
    processors = re.findall(r'Add "([\w.]+)" to OPTIONS', said)
    [backend] = re.findall(r'Add "([\w.]+)" behind the other backends', said)
    mended = f"""{bare}
MIDDLEWARE += [{order}]
TEMPLATES[0]["OPTIONS"] = {{"context_processors": {processors!r}}}
TEMPLATES[0]["DIRS"] = ["{ROOT}/templates"]  # a wheel has them in its apps
STATICFILES_DIRS = ["{ROOT}/static"]
AUTHENTICATION_BACKENDS.append({backend!r})
ANONYMOUS_USER_NAME = None
LOGIN_URL = "login"
USE_THOUSAND_SEPARATOR = False
SIGNALBOX = {{"REDIS_URL": SIGNALBOX["REDIS_URL"], "PREFIX": SIGNALBOX["PREFIX"]}}
del SIGNALBOX_ARCHIVE
"""
    urls = """
from django.contrib.auth.views import LoginView
from django.urls import include, path
urlpatterns = [path("ops/", include("dashboard.urls")), path("login/", LoginView.as_view(), name="login")]
"""
    checked, deployed, _ = project(("-c", MANY, "check", "check --deploy"), bare=mended, bare_urls=urls).split("<end>")
    assert (ids(checked), checked.split()[-1]) == (set(), "0")
    assert (ids(deployed), deployed.split()[-1]) == ({"I027"}, "0"), "a project under WSGI is told once, when it asks"
    asked = """
from django.test import Client
from django.contrib.auth import get_user_model
client = Client(SERVER_NAME="localhost")
client.force_login(get_user_model().objects.get(username="boss"))
page = client.get("/ops/machines/activation/")
print(page.status_code, "ATV-123:NBCSports" in page.content.decode(), "Admin" in page.content.decode())
"""
    said = project(("-m", "django", "shell", "--no-imports", "-c", "import asked"), asked=asked)
    assert said.splitlines()[-1] == "200 True False"


def test_addresses_that_change_with_the_language_are_an_error(project):
    urls = """
from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path
urlpatterns = i18n_patterns(path("ops/", include("dashboard.urls")))
"""
    settings = "from shop.settings import *\nROOT_URLCONF = 'bare_urls'\nLOGIN_URL = 'https://login.example/'"
    said = project("check", code=1, bare=settings, bare_urls=urls)
    assert ids(said) == {"E021"}
    assert "outside of i18n_patterns" in said


@pytest.mark.parametrize(("name", "id", "code"), [("dashboard", "W023", 0), ("machines", "E023", 1)])
def test_a_package_of_the_same_name_is_pointed_to_running_beside(project, name: str, id: str, code: int):
    settings = "from shop.settings import *\nROOT_URLCONF = 'bare_urls'"
    said = project("check", code=code, bare=settings, bare_urls="urlpatterns = []", **{f"{name}/__init__": ""})
    assert id in ids(said)
    assert f"the package {name} at " in said
    assert "`signalbox serve`" in said
