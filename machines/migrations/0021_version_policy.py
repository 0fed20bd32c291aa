from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("machines", "0020_reconciliation")]

    operations = [
        migrations.AddField(
            model_name="machine",
            name="version_policy",
            field=models.JSONField(
                blank=True, default=list, help_text="actions on its versions that take a second person", null=True
            ),
        ),
    ]
