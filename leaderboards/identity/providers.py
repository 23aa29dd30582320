"""The providers that people sign in with, as the settings describe them."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.conf import settings

from leaderboards.identity.exceptions import ProviderNotOffered, UnknownProvider

# What the CLI may name in /auth/init, whether this service offers a sign-in there or not.
PROVIDER_NAMES = ("discord", "github")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Addresses and credentials of one provider; `name_key` is where its profile has the name."""

    name: str
    label: str
    client_id: str
    client_secret: str = field(repr=False)
    authorize_url: str
    token_url: str
    profile_url: str
    scope: str
    name_key: str

    @property
    def redirect_uri(self) -> str:
        """The configured public address, whoever asks and through whichever proxy (FR-34)."""
        return f"{settings.PUBLIC_URL}/auth/cli/{self.name}"


def offered_providers() -> list[Provider]:
    """Those with an id and a secret."""
    discord = Provider(
        name="discord",
        label="Discord",
        client_id=settings.DISCORD_CLIENT_ID,
        client_secret=settings.DISCORD_CLIENT_SECRET,
        authorize_url=f"{settings.DISCORD_URL}/oauth2/authorize",
        token_url=f"{settings.DISCORD_URL}/api/oauth2/token",
        profile_url=f"{settings.DISCORD_URL}/api/users/@me",
        scope="identify",
        name_key="username",
    )
    github = Provider(
        name="github",
        label="GitHub",
        client_id=settings.GITHUB_CLIENT_ID,
        client_secret=settings.GITHUB_CLIENT_SECRET,
        authorize_url=f"{settings.GITHUB_URL}/login/oauth/authorize",
        token_url=f"{settings.GITHUB_URL}/login/oauth/access_token",
        profile_url=f"{settings.GITHUB_API_URL}/user",
        scope="",  # the public profile needs none
        name_key="login",
    )
    return [each for each in (discord, github) if each.client_id and each.client_secret]


def provider_called(name: str) -> Provider:
    """Raises UnknownProvider or ProviderNotOffered."""
    require_known(name)
    for provider in offered_providers():
        if provider.name == name:
            return provider
    raise ProviderNotOffered(f"signing in with {name} is not set up on this service")


def require_known(name: str) -> None:
    """Raises UnknownProvider."""
    if name not in PROVIDER_NAMES:
        raise UnknownProvider(f"the provider must be one of {', '.join(PROVIDER_NAMES)}")
