"""Sign-ins at a provider that are under way."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone

from leaderboards.models.people import ClientId

LOGIN_LIFETIME = timedelta(minutes=10)


def login_expiry() -> datetime:
    return timezone.now() + LOGIN_LIFETIME


class LoginAttempt(models.Model):
    """One trip to a provider and back: its state works once, soon, in the browser that began it."""

    # SHA-256 of the state that the provider hands back.
    state_digest = models.CharField(max_length=64, unique=True)
    provider = models.CharField(max_length=32)
    # The id that this attempt activates; none when a person signs in to the activation page.
    client_id = models.ForeignKey(
        ClientId, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    # SHA-256 of a cookie of the browser that began it; empty when a CLI began it.
    browser_digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(default=login_expiry)
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["expires_at"], name="login_expiry")]

    def __str__(self) -> str:
        return f"sign-in at {self.provider}"
