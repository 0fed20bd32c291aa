"""Every address of the pages. ``tests/pages/test_access.py`` lists each with who may open it."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from dashboard.pages import (
    audit,
    bulk_acts,
    bulks,
    components,
    converters,
    firing,
    instances,
    job_acts,
    jobs,
    machines,
    overview,
    queue_acts,
    queues,
    repairs,
    sm,
    workers,
)

converters.register()

MACHINE = "machines/<name:machine>/"
INSTANCE = f"{MACHINE}instances/<instance:id>/"
QUEUE = "queues/<name:machine>/<name:queue>/"
BULK = "bulk/<instance:id>/"
JOB = "jobs/<name:machine>/<job:id>/"

urlpatterns = [
    path("", overview.show, name="overview"),
    path(MACHINE, machines.show, name="machine"),
    path(f"{MACHINE}diagram.svg", machines.diagram, name="diagram"),
    path(f"{MACHINE}instances/", machines.instances, name="instances"),
    path(f"{MACHINE}create/", firing.create, name="create"),
    path(f"{MACHINE}bulk/", bulks.new, name="bulk-new"),
    path(INSTANCE, instances.show, name="instance"),
    path(f"{INSTANCE}fire/", firing.fire, name="fire"),
    path(f"{INSTANCE}force/", repairs.force, name="force"),
    path(f"{INSTANCE}edit/", repairs.edit, name="edit"),
    path(f"{INSTANCE}reset/", repairs.reset, name="reset"),
    path(f"{INSTANCE}retry/", repairs.retry, name="retry"),
    path(f"{INSTANCE}skip/", repairs.skip, name="skip"),
    path(f"{INSTANCE}cancel/", repairs.cancel, name="cancel"),
    path(f"{INSTANCE}suspend/", repairs.suspend, name="suspend"),
    path(f"{INSTANCE}resume/", repairs.resume, name="resume"),
    path(f"{INSTANCE}delete/", repairs.delete, name="delete"),
    path("sm/", sm.find, name="sm"),
    path("sm/<instance:key>/", sm.show, name="sm-key"),
    path("sm/<instance:key>/mutate/", sm.mutate, name="sm-mutate"),
    path("sm/<instance:key>/force/", sm.force, name="sm-force"),
    path("queues/", queues.show_all, name="queues"),
    path(QUEUE, queues.show, name="queue"),
    path(f"{QUEUE}pause/", queue_acts.pause, name="queue-pause"),
    path(f"{QUEUE}resume/", queue_acts.resume, name="queue-resume"),
    path(f"{QUEUE}limit/", queue_acts.limit, name="queue-limit"),
    path(f"{QUEUE}purge/", queue_acts.purge, name="queue-purge"),
    path(f"{QUEUE}redrive/", queue_acts.redrive, name="queue-redrive"),
    path(f"{QUEUE}move/", queue_acts.move, name="queue-move"),
    path(JOB, jobs.show, name="job"),
    path(f"{JOB}redrive/", job_acts.redrive, name="job-redrive"),
    path(f"{JOB}move/", job_acts.move, name="job-move"),
    path(f"{JOB}withdraw/", job_acts.withdraw, name="job-withdraw"),
    path(BULK, bulks.show, name="bulk"),
    path(f"{BULK}run/", bulk_acts.run, name="bulk-run"),
    path(f"{BULK}pause/", bulk_acts.pause, name="bulk-pause"),
    path(f"{BULK}resume/", bulk_acts.resume, name="bulk-resume"),
    path(f"{BULK}retry/", bulk_acts.retry, name="bulk-retry"),
    path(f"{BULK}stop/", bulk_acts.stop, name="bulk-stop"),
    path(f"{BULK}again/", bulk_acts.again, name="bulk-again"),
    path(f"{BULK}results.csv", bulk_acts.results, name="bulk-results"),
    path("workers/", workers.show, name="workers"),
    path("workers/<instance:worker>/", workers.direct, name="direct"),
    path("audit/", audit.show, name="audit"),
    path("audit/entries.csv", audit.export, name="audit-export"),
    path("components/", components.show, name="components"),
    path("accounts/login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
]
