from django.db import migrations, models
from django.db.models.functions import Cast

import machines.conf.encryption.fields
from machines.conf.encryption.ciphers import SecretUnreadable, Unreadable, decrypt
from machines.conf.encryption.rotation import rotate

FIELDS = (("webhook", "url"), ("webhook", "secret"), ("webhook", "former"), ("approval", "asked"))


def encrypt_values(apps, schema_editor):
    for name, column in FIELDS:
        model = apps.get_model("machines", name)
        rotate(model, model._meta.get_field(column))


def decrypt_values(apps, schema_editor):
    for name, column in FIELDS:
        model = apps.get_model("machines", name)
        rows = model._base_manager.annotate(stored=Cast(column, models.TextField()))
        for pk, stored in rows.values_list("pk", "stored"):
            text = decrypt(stored, model._meta.get_field(column).purpose)
            if isinstance(text, Unreadable):  # a release before this one could not read it either
                raise SecretUnreadable(f"{column} of {name} {pk}")
            model._base_manager.filter(pk=pk).update(**{column: models.Value(text, models.TextField())})


class Migration(migrations.Migration):

    dependencies = [
        ('machines', '0024_audit_chain'),
    ]

    operations = [
        migrations.AlterField(
            model_name='webhook',
            name='url',
            field=machines.conf.encryption.fields.EncryptedTextField(purpose='webhook.url'),
        ),
        migrations.AlterField(
            model_name='webhook',
            name='secret',
            field=machines.conf.encryption.fields.EncryptedTextField(purpose='webhook.secret'),
        ),
        migrations.AlterField(
            model_name='webhook',
            name='former',
            field=machines.conf.encryption.fields.EncryptedTextField(blank=True, default='', help_text='the secret before it was rotated', purpose='webhook.former'),
        ),
        migrations.AlterField(
            model_name='approval',
            name='asked',
            field=machines.conf.encryption.fields.EncryptedDocumentField(blank=True, default=dict, help_text='parameters; emptied after the decision', purpose='approval.asked'),
        ),
        migrations.RunPython(encrypt_values, decrypt_values),
    ]
