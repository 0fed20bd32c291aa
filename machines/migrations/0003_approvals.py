import django.utils.timezone
from django.db import migrations, models

import machines.approvals.models
import machines.catalog.models.document


class Migration(migrations.Migration):
    dependencies = [
        ("machines", "0002_audit"),
    ]

    operations = [
        migrations.CreateModel(
            name="Approval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("machine", models.CharField(max_length=64)),
                ("instance", models.CharField(blank=True, default="", max_length=200)),
                (
                    "bulk",
                    models.CharField(blank=True, default="", help_text="in place of an instance", max_length=200),
                ),
                ("action", models.CharField(help_text="as definitions name it: delete, fire:refund", max_length=120)),
                (
                    "asked",
                    machines.catalog.models.document.DocumentField(
                        blank=True, default=dict, help_text="what it takes; emptied once it is decided"
                    ),
                ),
                (
                    "target",
                    models.TextField(blank=True, default="", help_text="the event, the states, or the job"),
                ),
                (
                    "expect",
                    models.PositiveBigIntegerField(blank=True, help_text="the version it was asked for", null=True),
                ),
                ("reason", models.TextField()),
                ("asker", models.CharField(max_length=150)),
                ("asker_id", models.CharField(max_length=40)),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField(default=machines.approvals.models.end_of_request)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "waiting"),
                            ("running", "being done"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("declined", "declined"),
                            ("withdrawn", "withdrawn"),
                            ("expired", "expired"),
                        ],
                        default="open",
                        max_length=9,
                    ),
                ),
                ("decider", models.CharField(blank=True, default="", max_length=150)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("note", models.TextField(blank=True, default="", help_text="what the second person said")),
                ("outcome", models.TextField(blank=True, default="", help_text="what came of it")),
                (
                    "code",
                    models.CharField(blank=True, default="", help_text="of the error it failed with", max_length=40),
                ),
            ],
            options={
                "ordering": ["-asked_at", "-id"],
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["state", "-asked_at", "-id"], name="approval_by_state"),
                    models.Index(fields=["machine", "instance", "state"], name="approval_by_instance"),
                ],
            },
        ),
    ]
