"""Every address of the pages. ``tests/pages/table.py`` lists each with who may open it."""

from django.urls import path
from django.views.generic import RedirectView

from dashboard.account import login
from dashboard.account import views as account
from dashboard.alarms import views as alarms
from dashboard.approvals import views as approvals
from dashboard.audit import views as audit
from dashboard.catalog import views as machines
from dashboard.catalog.studio import checks, simulator
from dashboard.catalog.studio import views as studio
from dashboard.catalog.versions import plans
from dashboard.catalog.versions import views as versions
from dashboard.insight import views as insight
from dashboard.instances import history, instance_list, repairs
from dashboard.instances import views as instances
from dashboard.instances.bulks import views as bulks
from dashboard.instances.sm import views as sm_keys
from dashboard.jobs import queue_views as queues
from dashboard.jobs import views as jobs
from dashboard.jobs.failures import views as failures
from dashboard.jobs.workers import views as workers
from dashboard.overview import palette, search
from dashboard.overview import views as overview
from dashboard.schedules import views as schedules
from dashboard.shared import addresses
from dashboard.shared.form_views import list_action_paths
from dashboard.site.environment import is_own_site
from dashboard.webhooks import receivers as webhooks

addresses.register()

MACHINE = "machines/<name:machine>/"
EDIT = f"{MACHINE}edit/"
TRY = f"{MACHINE}try/"
INSTANCE = f"{MACHINE}instances/<instance:id>/"
VERSIONS = f"{MACHINE}versions/"
DRAFT = f"{VERSIONS}drafts/<int:id>/"
PLAN = f"{VERSIONS}plans/<int:id>/"
QUEUE = "queues/<name:machine>/<name:queue>/"
JOB = "jobs/<name:machine>/<job:id>/"
GROUP = "errors/<int:id>/"
BULK = "bulk/<instance:id>/"
SCHEDULE = "schedules/<str:name>/"
APPROVAL = "approvals/<int:id>/"

urlpatterns = [
    path("", overview.show, name="overview"),
    path("charts.json", overview.show_charts, name="charts"),
    path("wall/", overview.show_wall, name="wall"),
    path("search/", search.show, name="search"),
    path("search.json", palette.suggest, name="search-suggestions"),
    # The key of an alarm has slashes, so forms send it in their body.
    path("alarms/", alarms.show, name="alarms"),
    path("alarms/history/", alarms.show_history, name="alarm-history"),
    *list_action_paths("alarms/", "alarm-", alarms.ACTION_VIEWS),
    *alarms.ROUTE_PAGES.list_paths("alarms/routes/"),
    # Before the page of a machine of this name.
    path("machines/new/", studio.new, name="studio-new"),
    path("machines/new/check/", checks.check_new, name="studio-check-new"),
    path("machines/new/verify/", checks.verify_new, name="studio-verify-new"),
    path("machines/new/play/", simulator.play_new, name="studio-play-new"),
    path(EDIT, studio.edit, name="studio"),
    path(f"{EDIT}submit/", studio.submit, name="studio-submit"),
    path(f"{EDIT}check/", checks.check, name="studio-check"),
    path(f"{EDIT}verify/", checks.verify, name="studio-verify"),
    path(f"{EDIT}play/", simulator.play, name="studio-play"),
    path(f"{EDIT}save/", studio.save, name="studio-save"),
    path(f"{EDIT}presence/", studio.note_presence, name="studio-presence"),
    path(TRY, simulator.show, name="try"),
    path(f"{TRY}step/", simulator.step, name="try-step"),
    path(f"{TRY}scenario.yaml", simulator.scenario, name="try-scenario"),
    path(MACHINE, machines.show, name="machine"),
    path(f"{MACHINE}charts.json", machines.show_charts, name="machine-charts"),
    path(f"{MACHINE}diagram.svg", machines.diagram, name="diagram"),
    path(
        f"{MACHINE}instances/",  # the list of the release before, which is part of the machine's page
        RedirectView.as_view(pattern_name="signalbox:machine", permanent=True, query_string=True),
        name="instances",
    ),
    path(f"{MACHINE}instances.csv", instance_list.export_csv, name="instances-csv"),
    path(f"{MACHINE}instances.json", instance_list.export_json, name="instances-json"),
    path(f"{MACHINE}archived/", machines.show_archived, name="archived"),
    path(f"{MACHINE}completion.json", machines.suggest, name="completion"),
    path(f"{MACHINE}rows/", machines.rows, name="rows"),
    path(f"{MACHINE}create/", machines.create, name="create"),
    path(f"{MACHINE}reconcile/", machines.reconcile, name="reconcile"),
    path(f"{MACHINE}insight/", insight.show, name="insight"),
    path(f"{MACHINE}insight.xes", insight.export_xes, name="insight-xes"),
    path(f"{MACHINE}insight.parquet", insight.export_parquet, name="insight-parquet"),
    path(VERSIONS, versions.show, name="versions"),
    path(f"{VERSIONS}<int:number>/", versions.version, name="version"),
    path(f"{VERSIONS}diff/", versions.diff, name="version-diff"),
    path(f"{VERSIONS}rollout/", versions.rollout, name="version-rollout"),
    path(f"{VERSIONS}pin/", versions.pin, name="version-pin"),
    path(f"{VERSIONS}withdraw/", versions.withdraw, name="version-withdraw"),
    path(f"{VERSIONS}policy/", versions.policy, name="version-policy"),
    path(f"{VERSIONS}replay/", versions.show_replay, name="version-replay"),
    path(f"{VERSIONS}step.svg", versions.picture, name="version-step"),
    path(DRAFT, versions.show_draft, name="draft"),
    path(f"{DRAFT}publish/", versions.publish, name="draft-publish"),
    path(f"{DRAFT}rebase/", versions.rebase, name="draft-rebase"),
    path(f"{DRAFT}discard/", versions.discard, name="draft-discard"),
    path(f"{VERSIONS}plans/", plans.new, name="plan-new"),
    path(PLAN, plans.show, name="plan"),
    path(f"{PLAN}dry-run/", plans.dry_run, name="plan-dry-run"),
    path(f"{PLAN}move/", plans.move, name="plan-move"),
    path(f"{PLAN}back/", plans.back, name="plan-back"),
    path(f"{PLAN}refused.csv", plans.export_refused, name="plan-refused"),
    path(INSTANCE, instances.show, name="instance"),
    path(f"{INSTANCE}history.csv", history.export_csv, name="history-csv"),
    path(f"{INSTANCE}history.json", history.export_json, name="history-json"),
    path(f"{INSTANCE}fire/", instances.fire, name="fire"),
    *list_action_paths(INSTANCE, "", repairs.ACTION_VIEWS),
    *list_action_paths(f"{MACHINE}runs/<instance:id>/", "run-", repairs.RUN_VIEWS),
    path("queues/", queues.show_all, name="queues"),
    path(QUEUE, queues.show, name="queue"),
    path(f"{QUEUE}charts.json", queues.show_charts, name="queue-charts"),
    path(f"{QUEUE}groups/", queues.show_groups, name="queue-groups"),
    *list_action_paths(QUEUE, "queue-", queues.ACTION_VIEWS),
    path(JOB, jobs.show, name="job"),
    *list_action_paths(JOB, "job-", jobs.ACTION_VIEWS),
    path("workers/", workers.show, name="workers"),
    path("workers/<instance:worker>/", workers.direct, name="direct"),
    path("errors/", failures.show_all, name="errors"),
    path("errors/retry/", failures.show_retry, name="error-retry"),
    path("errors/retry/<int:number>/stop/", failures.stop_retry, name="error-retry-stop"),
    path(f"{QUEUE}search/", failures.show_search, name="queue-search"),
    path(GROUP, failures.show, name="error-group"),
    *list_action_paths(GROUP, "error-", failures.ACTION_VIEWS),
    path("bulk/", bulks.show_list, name="bulk-list"),
    path(f"{MACHINE}bulk/", bulks.new, name="bulk-new"),
    path(BULK, bulks.show, name="bulk"),
    *list_action_paths(BULK, "bulk-", bulks.ACTION_VIEWS),
    path(f"{BULK}results.csv", bulks.results, name="bulk-results"),
    path("schedules/", schedules.show_all, name="schedules"),
    path(f"{MACHINE}schedules/new/", schedules.make, name="schedule-new"),
    path(SCHEDULE, schedules.show, name="schedule"),
    *list_action_paths(SCHEDULE, "schedule-", schedules.ACTION_VIEWS),
    path("audit/", audit.show, name="audit"),
    path("audit/entries.csv", audit.export_csv, name="audit-export"),
    path("approvals/", approvals.show_all, name="approvals"),
    path(APPROVAL, approvals.show, name="approval"),
    *list_action_paths(APPROVAL, "approval-", approvals.ACTION_VIEWS),
    *webhooks.PAGES.list_paths("webhooks/"),
    path("views/", account.save_view, name="view-save"),
    path("views/<int:id>/rename/", account.rename_view, name="view-rename"),
    path("views/<int:id>/delete/", account.delete_view, name="view-delete"),
    path("account/", account.show, name="account"),
    path("account/tokens/", account.show_tokens, name="tokens"),
    path("account/tokens/<str:handle>/revoke/", account.revoke_token, name="token-revoke"),
    path("account/sessions/end/", account.end_sessions, name="sessions-end"),
    path("account/sessions/<str:handle>/end/", account.end_session, name="session-end"),
    path("account/theme/", account.choose_theme, name="account-theme"),
    path("account/tour/", account.end_tour, name="account-tour"),
    path("account/zone/", account.choose_zone, name="account-zone"),
    # A project that mounts the pages has a login of its own, which may ask for more.
    *([path("accounts/login/", login.login, name="login")] if is_own_site() else []),
    path("accounts/logout/", login.logout, name="logout"),
    path("sm/", sm_keys.find, name="sm"),
    path("sm/<instance:key>/", sm_keys.show, name="sm-key"),
    path("sm/<instance:key>/mutate/", sm_keys.mutate, name="sm-mutate"),
    path("sm/<instance:key>/force/", sm_keys.force, name="sm-force"),
]
