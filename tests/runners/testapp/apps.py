from __future__ import annotations

from django.apps import AppConfig


class TestAppConfig(AppConfig):
    name = "tests.runners.testapp"
    label = "testapp"

    def ready(self):
        from runners.handlers import register
        from tests.runners.testapp.handler import TestJobHandler

        register("test", TestJobHandler())
