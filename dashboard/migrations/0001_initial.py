import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Preferences",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="preferences",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("time_zone", models.CharField(blank=True, max_length=64)),
                (
                    "clock",
                    models.PositiveSmallIntegerField(
                        choices=[(24, "24 hours: 14:05"), (12, "12 hours: 2:05 pm")], default=24
                    ),
                ),
                ("calm", models.BooleanField(default=False)),
                ("keys", models.BooleanField(default=True)),
            ],
            options={
                "verbose_name_plural": "preferences",
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=60)),
                ("machine", models.CharField(blank=True, default="", max_length=64)),
                ("page", models.CharField(max_length=300)),
                ("query", models.CharField(blank=True, default="", max_length=2000)),
                ("shared", models.BooleanField(default=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("name", "id"),
                "indexes": [models.Index(fields=["page"], name="view_page")],
                "constraints": [models.UniqueConstraint(fields=("owner", "name"), name="one_view_of_a_name")],
            },
        ),
    ]
