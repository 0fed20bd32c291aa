"""Makes the archive of finished instances. On PostgreSQL its table is partitioned by the month of ``finished``."""

from django.db import migrations, models

TABLE = """
CREATE TABLE machines_archivedinstance (
    machine varchar(64) COLLATE "C" NOT NULL,
    instance varchar(200) COLLATE "C" NOT NULL,
    finished bigint NOT NULL,
    definition integer NOT NULL CHECK (definition >= 0),
    revision bigint NOT NULL CHECK (revision >= 0),
    state text NOT NULL,
    created bigint NOT NULL,
    actor varchar(150) NOT NULL,
    archived bigint NOT NULL,
    indexed text NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (machine, instance, finished)
) PARTITION BY RANGE (finished)
"""
INDEX = "CREATE INDEX archived_by_time ON machines_archivedinstance (machine, finished DESC)"


def create(apps, editor):
    if editor.connection.vendor == "postgresql":
        editor.execute(TABLE)
        editor.execute(INDEX)
    else:
        editor.create_model(apps.get_model("machines", "ArchivedInstance"))


def drop(apps, editor):
    editor.execute("DROP TABLE machines_archivedinstance")


class Migration(migrations.Migration):
    dependencies = [
        ("machines", "0011_labels"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="ArchivedInstance",
                    fields=[
                        ("pk", models.CompositePrimaryKey("machine", "instance", "finished", blank=True, editable=False, primary_key=True, serialize=False)),
                        ("machine", models.CharField(max_length=64)),
                        ("instance", models.CharField(max_length=200)),
                        ("finished", models.BigIntegerField(help_text="ms since 1970")),
                        ("definition", models.PositiveIntegerField(help_text="the version of its machine")),
                        ("revision", models.PositiveBigIntegerField()),
                        ("state", models.TextField(help_text="its configuration as one line of text")),
                        ("created", models.BigIntegerField(help_text="ms since 1970")),
                        ("actor", models.CharField(blank=True, default="", help_text="the actor of its last step that had one", max_length=150)),
                        ("archived", models.BigIntegerField(help_text="ms since 1970")),
                        ("indexed", models.TextField(blank=True, default="", help_text="JSON of the indexed data fields")),
                        ("body", models.BinaryField(help_text="compressed JSON: the fields of its hash, its history")),
                    ],
                    options={
                        "default_permissions": (),
                        "indexes": [models.Index(fields=["machine", "-finished"], name="archived_by_time")],
                    },
                ),
            ],
        ),
        migrations.RunPython(create, drop),
        migrations.CreateModel(
            name="ArchiveTotal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("machine", models.CharField(max_length=64, unique=True)),
                ("instances", models.BigIntegerField(default=0)),
                ("bytes", models.BigIntegerField(default=0, help_text="of the bodies")),
                ("last", models.BigIntegerField(default=0, help_text="ms since 1970: when the last one was archived")),
            ],
            options={"default_permissions": ()},
        ),
    ]
