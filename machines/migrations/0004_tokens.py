import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("machines", "0003_approvals"),
    ]

    operations = [
        migrations.CreateModel(
            name="Token",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                (
                    "handle",
                    models.CharField(
                        help_text="the public part, which names it in the audit", max_length=12, unique=True
                    ),
                ),
                ("digest", models.CharField(help_text="SHA-256 of the secret part, hexadecimal", max_length=64)),
                ("rights", models.JSONField(default=list)),
                ("machines", models.JSONField(blank=True, default=list, help_text="names; empty: every machine")),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires", models.DateTimeField()),
                ("last_used", models.DateTimeField(blank=True, null=True)),
                ("revoked", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
                "ordering": ["-created", "-id"],
                "default_permissions": ("view",),
                "permissions": [("revoke_token", "Can revoke API tokens of others")],
            },
        ),
    ]
