from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("machines", "0003_approvals"),
    ]

    operations = []
