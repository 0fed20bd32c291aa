import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """The right to see sensitive fields, and rights on single machines. Roles are made after it: machines/people/roles.py."""

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("machines", "0006_statistics"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="machine",
            options={
                "default_permissions": ("view",),
                "ordering": ["name"],
                "permissions": [
                    ("fire_machine", "Can fire events"),
                    ("operate_machine", "Can operate (force, delete, queues)"),
                    ("publish_machine", "Can publish definitions"),
                    ("reveal_machine", "Can see fields marked sensitive"),
                ],
            },
        ),
        migrations.CreateModel(
            name="MachineUserGrant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "content_object",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="user_grants",
                        to="machines.machine",
                    ),
                ),
                (
                    "permission",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="auth.permission"),
                ),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "default_permissions": (),
                "abstract": False,
                "unique_together": {("user", "permission", "content_object")},
            },
        ),
        migrations.CreateModel(
            name="MachineGroupGrant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "content_object",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="group_grants",
                        to="machines.machine",
                    ),
                ),
                ("group", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="auth.group")),
                (
                    "permission",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="auth.permission"),
                ),
            ],
            options={
                "default_permissions": (),
                "abstract": False,
                "unique_together": {("group", "permission", "content_object")},
            },
        ),
    ]
