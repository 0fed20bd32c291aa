"""The addresses of the Patterns page. The site includes them where the sample app is installed."""

from django.urls import path

from . import views

urlpatterns = [
    path("", views.show, name="patterns"),
    path("<slug:section>/", views.act, name="patterns-act"),
]
