import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """What is written through buffers in Redis: when people were seen, which entries were written, and which stretches of
    a machine's time. The readings of counters lie in Redis from here on: the first sampling leaves its own and no more."""

    dependencies = [
        ("machines", "0007_roles"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="LastSeen",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "at",
                    models.DateTimeField(help_text="of the last request that was noted, one a minute for each process"),
                ),
                ("requests", models.PositiveBigIntegerField(default=0)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="last_seen",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "verbose_name": "last seen",
                "verbose_name_plural": "last seen",
            },
        ),
        migrations.CreateModel(
            name="Receipt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("entry", models.CharField(max_length=150, unique=True)),
                ("at", models.DateTimeField(auto_now_add=True, db_index=True)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="MeasuredStretch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("machine", models.CharField(max_length=64)),
                ("begin", models.BigIntegerField(help_text="ms since 1970, by the clock of Redis")),
                ("end", models.BigIntegerField(help_text="ms since 1970, by the clock of Redis")),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["machine", "end"], name="measured_stretch_by_end")],
            },
        ),
        migrations.DeleteModel(name="CounterReading"),
        migrations.RemoveField(model_name="samplingturn", name="resumed"),
        migrations.AlterField(
            model_name="samplingturn",
            name="number",
            field=models.BigIntegerField(default=0, help_text="how often something was written"),
        ),
        migrations.AlterField(
            model_name="samplingturn",
            name="at",
            field=models.BigIntegerField(
                default=0, help_text="ms since 1970, by the clock of Redis: the last sampling written"
            ),
        ),
        migrations.AddField(
            model_name="token",
            name="uses",
            field=models.PositiveBigIntegerField(default=0, help_text="requests it has opened"),
        ),
    ]
