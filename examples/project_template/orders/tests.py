from django.contrib.auth.models import User
from django.test import TestCase

from machines.testing import SignalboxMixin

from .models import Order


class OrderTests(SignalboxMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.order = Order.objects.create(total=20)

    def test_a_paid_order_is_shipped(self):
        id = str(self.order.pk)
        self.signalbox.assert_refused("order", id, "pay", {"amount": 19}, because="event.amount >= total")
        self.order.status.fire("pay", {"amount": 20})
        self.signalbox.run_jobs()
        self.signalbox.update_rows()
        self.order.refresh_from_db()
        self.assertEqual(self.order.status, "Shipped")
        self.signalbox.assert_data("order", id, parcel=f"P-{id}")

    def test_an_order_expires_after_thirty_days(self):
        self.signalbox.advance("30d")
        self.signalbox.update_rows()
        self.assertEqual(Order.objects.get().status, "Expired")

    def test_the_room_shows_the_machine(self):
        self.client.force_login(User.objects.create_superuser("boss"))
        self.assertContains(self.client.get("/ops/machines/order/"), "Shipped")
