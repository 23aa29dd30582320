"""Settings of dispatcher processes under test: the real ones, and a handler for jobs "test"."""

from __future__ import annotations

from kernelbot_site.settings import *  # noqa: F403
from kernelbot_site.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.runners.testapp.apps.TestAppConfig"]
