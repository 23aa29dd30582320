"""Who may do what: one table of people, their provider identities, and their client ids."""

from __future__ import annotations

import hashlib
import secrets

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q
from django.utils import timezone


def new_user_id() -> str:
    return f"u{secrets.token_hex(8)}"


def digest_client_id(client_id: str) -> str:
    """What is kept of a CLI or web id: its SHA-256, so that the table gives nobody access."""
    return hashlib.sha256(client_id.encode("utf-8", "surrogateescape")).hexdigest()


class PopcornUser(AbstractUser):
    """A person. Operators sign in with a password; submitters come with a client id and have none."""

    # Public and text on the wire: the id at the provider that they first came from, or made here.
    user_id = models.CharField(max_length=64, unique=True, default=new_user_id)
    display_name = models.CharField(max_length=150, blank=True)
    banned_at = models.DateTimeField(null=True, blank=True)
    ban_reason = models.CharField(max_length=500, blank=True)

    def __str__(self) -> str:
        return self.shown_name

    @property
    def shown_name(self) -> str:
        """`user_name` on the wire."""
        return self.display_name or self.username

    @property
    def actor_label(self) -> str:
        """How audit rows call this person, readable without the row."""
        return f"{self.shown_name} ({self.user_id})"


class Identity(models.Model):
    """A person as a provider knows them."""

    user = models.ForeignKey(PopcornUser, on_delete=models.PROTECT, related_name="identities")
    provider = models.CharField(max_length=32)
    provider_id = models.CharField(max_length=128)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint(name="identity_once", fields=["provider", "provider_id"])
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.provider_id}"


class ClientIdQuerySet(models.QuerySet["ClientId"]):
    def valid(self) -> ClientIdQuerySet:
        """Ids that a person activated and nobody revoked."""
        return self.filter(activated_at__isnull=False, revoked_at__isnull=True)


class ClientId(models.Model):
    """A long-lived bearer id of a CLI or a browser; nobody's until it is activated."""

    class Kind(models.TextChoices):
        CLI = "cli"
        WEB = "web"

    kind = models.CharField(max_length=8, choices=Kind)
    digest = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(
        PopcornUser, null=True, blank=True, on_delete=models.PROTECT, related_name="client_ids"
    )
    issued_at = models.DateTimeField(default=timezone.now)
    issued_to_address = models.GenericIPAddressField(null=True, blank=True)
    activated_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Written once a minute at most.
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = ClientIdQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="client_id_kind_known", condition=Q(kind__in=["cli", "web"])
            ),
            models.CheckConstraint(
                name="client_id_activated_for_somebody",
                condition=Q(user__isnull=True, activated_at__isnull=True)
                | Q(user__isnull=False, activated_at__isnull=False),
            ),
        ]
        indexes = [
            # The forgotten ones, which each new id takes away.
            models.Index(
                fields=["issued_at"],
                name="client_id_waiting",
                condition=Q(activated_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} id {self.digest[:8]}…"
