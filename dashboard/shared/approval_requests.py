"""Answers an action that needs approval: the browser goes to the request that was filed."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from machines.models import Approval


def redirect_to_request(request: HttpRequest, approval: Approval) -> HttpResponse:
    """Redirect to the page of the approval request, with a notice."""
    messages.info(
        request,
        f"Approval requested: {approval.action} on {approval.subject}. It runs once another person approves it.",
    )
    return redirect("signalbox:approval", approval.pk)
