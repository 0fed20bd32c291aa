from .preferences import Preferences
from .view import SavedView

__all__ = ["Preferences", "SavedView"]
