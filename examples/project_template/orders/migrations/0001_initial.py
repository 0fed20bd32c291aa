import machines.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Order',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('total', models.IntegerField()),
                ('status', machines.fields.MachineField('order', db_index=True, max_length=255)),
                ('status_revision', machines.fields.RevisionField(default=0, editable=False)),
            ],
        ),
    ]
