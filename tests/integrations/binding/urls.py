"""The product's site, and an admin of the shop's own beside it."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from dashboard.site_urls import urlpatterns as product
from machines.integrations.binding.admin import MachineAdminMixin

from .shop.models import Order, Parcel

office = admin.AdminSite(name="office")


class OrderAdmin(MachineAdminMixin, admin.ModelAdmin):
    list_display = ["number", "status"]


class ParcelAdmin(MachineAdminMixin, admin.ModelAdmin):
    pass


office.register(Order, OrderAdmin)
office.register(Parcel, ParcelAdmin)

urlpatterns = [path("office/", office.urls), *product]
