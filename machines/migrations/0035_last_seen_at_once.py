from django.db import migrations


def remove_alarms(apps, editor):
    """Remove what is recorded of alarms about pending writes, a kind that is no more."""
    apps.get_model('machines', 'AlarmState').objects.filter(kind='writes').delete()


class Migration(migrations.Migration):
    # The table of receipts stays until no worker of 0.1.0 writes it.

    dependencies = [
        ('machines', '0034_readings_in_sql'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel(name='Receipt')]),
        migrations.RunPython(remove_alarms, migrations.RunPython.noop),
    ]
