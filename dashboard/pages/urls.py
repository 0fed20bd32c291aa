"""Every address of the pages. ``tests/pages/test_access.py`` lists each with who may open it."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from dashboard.pages import components, converters, firing, instances, machines, overview, queues, repairs, sm, workers

converters.register()

MACHINE = "machines/<name:machine>/"
INSTANCE = f"{MACHINE}instances/<instance:id>/"

urlpatterns = [
    path("", overview.show, name="overview"),
    path(MACHINE, machines.show, name="machine"),
    path(f"{MACHINE}diagram.svg", machines.diagram, name="diagram"),
    path(f"{MACHINE}instances/", machines.instances, name="instances"),
    path(f"{MACHINE}create/", firing.create, name="create"),
    path(INSTANCE, instances.show, name="instance"),
    path(f"{INSTANCE}fire/", firing.fire, name="fire"),
    path(f"{INSTANCE}force/", repairs.force, name="force"),
    path(f"{INSTANCE}suspend/", repairs.suspend, name="suspend"),
    path(f"{INSTANCE}resume/", repairs.resume, name="resume"),
    path(f"{INSTANCE}delete/", repairs.delete, name="delete"),
    path("sm/", sm.find, name="sm"),
    path("sm/<instance:key>/", sm.show, name="sm-key"),
    path("sm/<instance:key>/mutate/", sm.mutate, name="sm-mutate"),
    path("sm/<instance:key>/force/", sm.force, name="sm-force"),
    path("queues/", queues.show_all, name="queues"),
    path("queues/<name:machine>/<name:queue>/", queues.show, name="queue"),
    path("workers/", workers.show, name="workers"),
    path("components/", components.show, name="components"),
    path("accounts/login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
]
