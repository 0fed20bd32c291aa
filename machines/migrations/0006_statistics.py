import machines.catalog.models.document
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("machines", "0005_webhooks"),
    ]

    operations = [
        migrations.CreateModel(
            name="CounterReading",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("machine", models.CharField(max_length=64, unique=True)),
                ("at", models.BigIntegerField(help_text="ms since 1970, by the clock of Redis")),
                ("counters", machines.catalog.models.document.DocumentField(default=dict)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="SamplingTurn",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.BigIntegerField(default=0)),
                ("at", models.BigIntegerField(default=0, help_text="ms since 1970, by the clock of Redis")),
                ("began", models.BigIntegerField(default=0, help_text="ms since 1970: the first sampling of all")),
                ("resumed", models.BigIntegerField(default=0, help_text="ms since 1970: the first one after the last gap")),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Measurement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("machine", models.CharField(max_length=64)),
                (
                    "period",
                    models.PositiveSmallIntegerField(choices=[(0, "Gap"), (60, "Minute"), (3600, "Hour")]),
                ),
                ("at", models.BigIntegerField(help_text="s since 1970: where the stretch begins")),
                ("covered", models.PositiveBigIntegerField(default=0, help_text="ms of it that were measured")),
                ("transitions", models.BigIntegerField(default=0)),
                ("refused", models.BigIntegerField(default=0)),
                ("enqueued", models.BigIntegerField(default=0)),
                ("completed", models.BigIntegerField(default=0)),
                (
                    "failed",
                    models.BigIntegerField(default=0, help_text="attempts that failed, or whose lease ran out"),
                ),
                ("died", models.BigIntegerField(default=0)),
                ("instances", models.BigIntegerField(default=0, help_text="how many there were at the end")),
                ("numbers", machines.catalog.models.document.DocumentField(default=dict)),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["period", "at"], name="measurement_by_time")],
                "constraints": [
                    models.UniqueConstraint(fields=("machine", "period", "at"), name="one_measurement_of_a_stretch")
                ],
            },
        ),
    ]
