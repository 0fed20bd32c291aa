"""Every address of the pages. ``tests/pages/table.py`` lists each with who may open it."""

from __future__ import annotations

from django.urls import path

from dashboard.shared import converters

from .account import links, login, token_sessions, tokens
from .account import views as account
from .approvals import views as approvals
from .audit import views as audit
from .bulk import actions as bulk_acts
from .bulk import views as bulks
from .instances import firing, repairs
from .instances import views as instances
from .jobs import actions as job_acts
from .jobs import views as jobs
from .machines import views as machines
from .overview import components, notes, search
from .overview import views as overview
from .queues import actions as queue_acts
from .queues import views as queues
from .shared import charts, saved_views
from .sm import views as sm
from .webhooks import views as webhooks
from .workers import views as workers

converters.register()

MACHINE = "machines/<name:machine>/"
INSTANCE = f"{MACHINE}instances/<instance:id>/"
QUEUE = "queues/<name:machine>/<name:queue>/"
BULK = "bulk/<instance:id>/"
APPROVAL = "approvals/<int:id>/"
WEBHOOK = "webhooks/<int:id>/"
JOB = "jobs/<name:machine>/<job:id>/"

urlpatterns = [
    path("", overview.show, name="overview"),
    path("charts.json", charts.overview, name="charts"),
    path(MACHINE, machines.show, name="machine"),
    path(f"{MACHINE}charts.json", charts.machine, name="machine-charts"),
    path(f"{MACHINE}diagram.svg", machines.diagram, name="diagram"),
    path(f"{MACHINE}instances/", machines.instances, name="instances"),
    path(f"{MACHINE}counts/", machines.counts, name="counts"),
    path(f"{MACHINE}rows/", machines.rows, name="rows"),
    path("views/", saved_views.save, name="view-save"),
    path("note/", notes.show, name="note"),
    path("views/<int:id>/rename/", saved_views.rename, name="view-rename"),
    path("views/<int:id>/delete/", saved_views.delete, name="view-delete"),
    path("links/", links.make, name="link-make"),
    path("links/<str:handle>/renew/", links.renew, name="link-renew"),
    path("links/<str:handle>/revoke/", links.revoke, name="link-revoke"),
    path("v/<str:token>/", links.show, name="link"),
    path(f"{MACHINE}create/", machines.create, name="create"),
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
    path(f"{QUEUE}charts.json", charts.queue, name="queue-charts"),
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
    path(f"{BULK}rate/", bulk_acts.rate, name="bulk-rate"),
    path(f"{BULK}again/", bulk_acts.again, name="bulk-again"),
    path(f"{BULK}results.csv", bulk_acts.results, name="bulk-results"),
    path("workers/", workers.show, name="workers"),
    path("workers/<instance:worker>/", workers.direct, name="direct"),
    path("approvals/", approvals.show_all, name="approvals"),
    path(APPROVAL, approvals.show, name="approval"),
    path(f"{APPROVAL}approve/", approvals.approve, name="approval-approve"),
    path(f"{APPROVAL}decline/", approvals.decline, name="approval-decline"),
    path(f"{APPROVAL}withdraw/", approvals.withdraw, name="approval-withdraw"),
    path("audit/", audit.show, name="audit"),
    path("audit/entries.csv", audit.export, name="audit-export"),
    path("webhooks/", webhooks.show_all, name="webhooks"),
    path("webhooks/new/", webhooks.make, name="webhook-make"),
    path(WEBHOOK, webhooks.show, name="webhook"),
    path(f"{WEBHOOK}change/", webhooks.change, name="webhook-change"),
    path(f"{WEBHOOK}pause/", webhooks.pause, name="webhook-pause"),
    path(f"{WEBHOOK}resume/", webhooks.resume, name="webhook-resume"),
    path(f"{WEBHOOK}rotate/", webhooks.rotate, name="webhook-rotate"),
    path(f"{WEBHOOK}test/", webhooks.test, name="webhook-test"),
    path(f"{WEBHOOK}delete/", webhooks.delete, name="webhook-delete"),
    path(f"{WEBHOOK}deliveries/<int:delivery>/again/", webhooks.redeliver, name="webhook-redeliver"),
    path("components/", components.show, name="components"),
    path("search/", search.show, name="search"),
    path("account/", account.show, name="account"),
    path("account/tokens/", tokens.show, name="tokens"),
    path("account/tokens/<str:handle>/revoke/", tokens.revoke, name="token-revoke"),
    path("account/sessions/end/", token_sessions.end_all, name="sessions-end"),
    path("account/sessions/<str:handle>/end/", token_sessions.end, name="session-end"),
    path("account/zone/", account.choose_zone, name="account-zone"),
    path("accounts/login/", login.login, name="login"),
    path("accounts/logout/", login.logout, name="logout"),
]
