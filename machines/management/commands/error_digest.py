"""``python manage.py error_digest``: sends the digest of the error inbox now."""

from typing import Any

from django.core.management.base import BaseCommand

from machines.jobs.failures.digest import send_now


class Command(BaseCommand):
    help = "Sends the error digest now, to ERROR_DIGEST_TO and to webhooks that name errors.digest."

    def handle(self, **given: Any) -> None:
        mails, deliveries = send_now()
        self.stdout.write(f"{mails} mail sent, {deliveries} webhook deliveries made")
