import django.db.models.deletion
import django.utils.timezone
import machines.catalog.models.document
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("machines", "0004_tokens"),
    ]

    operations = [
        migrations.CreateModel(
            name="LogGap",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("machine", models.CharField(max_length=64)),
                ("partition", models.PositiveIntegerField()),
                ("after", models.CharField(max_length=44)),
                ("lost", models.BigIntegerField(help_text="entries; 0: the log was replaced by another one")),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["-id"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80, unique=True)),
                ("url", models.TextField()),
                (
                    "machines",
                    machines.catalog.models.document.DocumentField(
                        blank=True, default=list, help_text="names; none: those of every machine"
                    ),
                ),
                (
                    "types",
                    machines.catalog.models.document.DocumentField(
                        default=list, help_text="of messages, * stands for any characters"
                    ),
                ),
                ("secret", models.CharField(max_length=80)),
                (
                    "former",
                    models.CharField(
                        blank=True, default="", help_text="the secret before it was rotated", max_length=80
                    ),
                ),
                ("former_until", models.DateTimeField(blank=True, null=True)),
                ("active", models.BooleanField(default=True)),
                ("stopped", models.TextField(blank=True, default="", help_text="why it was switched off by itself")),
                (
                    "since",
                    models.BigIntegerField(default=0, help_text="ms by Redis' clock: messages from then on are sent"),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(default=0, help_text="attempts that failed since one got through"),
                ),
                ("rest_until", models.DateTimeField(blank=True, null=True)),
                ("maker", models.CharField(max_length=150)),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["name"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="LogCursor",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("machine", models.CharField(max_length=64)),
                ("partition", models.PositiveIntegerField()),
                ("read", models.CharField(default="0-0", max_length=44)),
                ("position", models.BigIntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("machine", "partition"), name="one_cursor_of_a_log")],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("message", models.CharField(help_text="machine, partition and place in the log", max_length=120)),
                (
                    "key",
                    models.CharField(help_text="webhook-id: the same with each attempt", max_length=40, unique=True),
                ),
                ("type", models.CharField(max_length=200)),
                ("machine", models.CharField(blank=True, default="", max_length=64)),
                ("instance", models.CharField(blank=True, default="", max_length=200)),
                ("body", models.TextField(help_text="the very bytes that are signed and sent; JSON in ASCII")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("sending", "being sent"),
                            ("sent", "sent"),
                            ("dead", "given up"),
                        ],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                (
                    "due",
                    models.DateTimeField(
                        default=django.utils.timezone.now,
                        help_text="of the next attempt, or when one under way is lost",
                    ),
                ),
                ("claim", models.CharField(blank=True, default="", help_text="of who sends it now", max_length=32)),
                ("tries", models.PositiveIntegerField(default=0, help_text="since it was made or sent again by hand")),
                (
                    "attempts",
                    machines.catalog.models.document.DocumentField(
                        blank=True, default=list, help_text="at, status, ms and error of each, oldest first"
                    ),
                ),
                ("made_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "webhook",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="deliveries", to="machines.webhook"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ["-id"],
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["state", "due"], name="delivery_by_due"),
                    models.Index(fields=["webhook", "state", "-id"], name="delivery_by_webhook"),
                    models.Index(fields=["made_at"], name="delivery_by_age"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("webhook", "message"), name="one_delivery_of_a_message")
                ],
            },
        ),
    ]
