from django.db import migrations, models


def write_seal(apps, schema_editor):
    """Write the entry that seals what retention has removed so far; it is chained as others are."""
    for head in apps.get_model("machines", "AuditHead").objects.filter(sealed__gt=0):
        detail = {"first": 1, "last": head.sealed, "count": head.sealed, "digest": head.seal}
        apps.get_model("machines", "AuditEntry").objects.create(
            actor="retention", action="audit.seal", outcome="done", source="migrate", detail=detail
        )
    from machines.audit.chain import chain_waiting

    while chain_waiting():
        pass


class Migration(migrations.Migration):

    dependencies = [
        ('machines', '0027_retry_of_any_group'),
    ]

    operations = [
        migrations.RunPython(write_seal, migrations.RunPython.noop),
        migrations.RemoveField(model_name='audithead', name='sealed'),
        migrations.RemoveField(model_name='audithead', name='seal'),
        migrations.CreateModel(
            name='AuditReceiver',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=300, unique=True)),
                ('number', models.BigIntegerField(default=0)),
                ('error', models.CharField(blank=True, default='', max_length=500)),
                ('since', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'default_permissions': (),
            },
        ),
    ]
