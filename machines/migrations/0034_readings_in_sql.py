from django.db import migrations, models

import machines.conf.database


class Migration(migrations.Migration):
    # Workers of 0.1.0 log that statistics wait for the database until they are restarted: they must not write minutes
    # that those of this release have written.

    dependencies = [
        ('machines', '0033_no_granted_senders'),
    ]

    operations = [
        migrations.CreateModel(
            name='CounterReading',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('machine', models.CharField(max_length=64, unique=True)),
                ('at', models.BigIntegerField(help_text='ms since 1970, by the clock of Redis')),
                ('counters', machines.conf.database.DocumentField(default=dict)),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.DeleteModel(name='MeasuredStretch'),
    ]
