from django.apps import AppConfig


class StoreConfig(AppConfig):
    name = "tests.integrations.attached.store"
    label = "store"
    default_auto_field = "django.db.models.BigAutoField"
