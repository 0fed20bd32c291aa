from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("machines", "0005_webhooks"),
    ]

    operations = []
