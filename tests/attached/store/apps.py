from django.apps import AppConfig


class StoreConfig(AppConfig):
    name = "tests.attached.store"
    label = "store"
    default_auto_field = "django.db.models.BigAutoField"
