"""Addresses of the versions of a machine: comparisons, drafts, plans, replays, roll-outs."""

from __future__ import annotations

from django.urls import path

from . import plans, views

VERSIONS = "machines/<name:machine>/versions/"
DRAFT = f"{VERSIONS}drafts/<int:id>/"
PLAN = f"{VERSIONS}plans/<int:id>/"

urlpatterns = [
    path(VERSIONS, views.show, name="versions"),
    path(f"{VERSIONS}<int:number>/", views.version, name="version"),
    path(f"{VERSIONS}diff/", views.diff, name="version-diff"),
    path(f"{VERSIONS}rollout/", views.rollout, name="version-rollout"),
    path(f"{VERSIONS}pin/", views.pin, name="version-pin"),
    path(f"{VERSIONS}withdraw/", views.withdraw, name="version-withdraw"),
    path(f"{VERSIONS}policy/", views.policy, name="version-policy"),
    path(f"{VERSIONS}replay/", views.show_replay, name="version-replay"),
    path(f"{VERSIONS}step.svg", views.picture, name="version-step"),
    path(f"{VERSIONS}drafts/", views.new_draft, name="draft-new"),
    path(DRAFT, views.show_draft, name="draft"),
    path(f"{DRAFT}edit/", views.edit, name="draft-edit"),
    path(f"{DRAFT}publish/", views.publish, name="draft-publish"),
    path(f"{DRAFT}rebase/", views.rebase, name="draft-rebase"),
    path(f"{DRAFT}discard/", views.discard, name="draft-discard"),
    path(f"{VERSIONS}plans/", plans.new, name="plan-new"),
    path(PLAN, plans.show, name="plan"),
    path(f"{PLAN}dry-run/", plans.dry_run, name="plan-dry-run"),
    path(f"{PLAN}move/", plans.move, name="plan-move"),
    path(f"{PLAN}back/", plans.back, name="plan-back"),
    path(f"{PLAN}refused.csv", plans.export_refused, name="plan-refused"),
]
