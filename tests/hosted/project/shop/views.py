"""Pages of the shop."""

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.shortcuts import render


def home(request):
    return render(request, "home.html", {"sum": 1234.5})


def broken(request):
    raise RuntimeError("the shop is broken")


def gone(request):
    raise Http404("sold out")


def private(request):
    raise PermissionDenied
