from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("machines", "0009_requests")]

    operations = [
        # Machines that are there are looked at once (machines.catalog.accepted_senders): until then, nothing is known.
        migrations.AddField(
            model_name="machine",
            name="granted",
            field=models.JSONField(
                blank=True,
                default=None,
                null=True,
                help_text="machines that go on sending to it since they did before its definition named any",
            ),
        ),
        migrations.AlterField(
            model_name="machine",
            name="granted",
            field=models.JSONField(
                blank=True,
                default=list,
                null=True,
                help_text="machines that go on sending to it since they did before its definition named any",
            ),
        ),
    ]
