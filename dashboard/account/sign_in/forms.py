"""The one form of django-allauth that is stricter here."""

from __future__ import annotations

from allauth.account.forms import ResetPasswordForm


class PasswordResetForm(ResetPasswordForm):  # type: ignore[misc]
    def clean_email(self) -> str:
        """Leave out accounts without a password: a mailbox must not be a way around their provider."""
        email = str(super().clean_email())
        self.users = [user for user in self.users if user.has_usable_password()]
        return email
