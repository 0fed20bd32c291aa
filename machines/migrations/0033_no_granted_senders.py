from django.db import migrations


class Migration(migrations.Migration):
    # The column stays until no process of 0.1.0 reads it.

    dependencies = [
        ('machines', '0032_facts_in_a_database'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveField(model_name='machine', name='granted')],
        ),
    ]
