from django.db import migrations, models


class Migration(migrations.Migration):
    """Give the field its name; the column of the archive keeps the one that it has."""

    dependencies = [("machines", "0021_version_policy")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("archivedinstance", "definition", "version"),
                migrations.AlterField(
                    model_name="archivedinstance",
                    name="version",
                    field=models.PositiveIntegerField(db_column="definition", help_text="of its machine"),
                ),
            ]
        ),
    ]
