from __future__ import annotations

import pytest
from django.core.checks import run_checks

# The checks of JSON columns ask the database what it can do.
pytestmark = pytest.mark.django_db


def ids_of_errors() -> set[str | None]:
    """Of the site's own checks; others speak of the tests' fake runner."""
    found = {message.id for message in run_checks() if message.is_serious()}
    return {check for check in found if check and check.startswith("kernelbot_site.")}


def test_several_web_processes_need_a_shared_cache(settings):
    settings.WEB_PROCESSES = 2
    assert ids_of_errors() == {"kernelbot_site.E001"}

    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache"}}
    assert ids_of_errors() == set()


def test_the_public_address_must_be_one(settings):
    settings.PUBLIC_URL = "kernelbot.example"

    assert ids_of_errors() == {"kernelbot_site.E002"}
