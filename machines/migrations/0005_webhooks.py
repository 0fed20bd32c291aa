from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("machines", "0004_tokens"),
    ]

    operations = []
