from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("machines", "0008_receipts")]

    operations = [
        migrations.AddField(
            model_name="auditentry",
            name="request",
            field=models.CharField(
                blank=True, default="", help_text="id of the request that asked for it, if one did", max_length=40
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["request", "-at", "-id"], name="audit_by_request"),
        ),
    ]
