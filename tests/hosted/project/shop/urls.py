"""Addresses of the shop; Signalbox is at ``/ops/``."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from . import views

admin.site.site_header = admin.site.site_title = "Shop administration"

urlpatterns = [
    path("", views.home, name="overview"),  # a name that Signalbox has, too
    path("broken/", views.broken),
    path("gone/", views.gone),
    path("private/", views.private),
    path("login/", auth.LoginView.as_view(template_name="login.html"), name="login"),
    path("backoffice/", admin.site.urls),
    path("ops/", include("dashboard.urls")),
]
