from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("machines", "0006_statistics"),
    ]

    operations = []
