from __future__ import annotations

from django.db import migrations

from runners.append_only import protecting


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboards", "0002_service_around_profiling"),
        ("runners", "0003_append_only"),
    ]
    operations = [
        protecting("leaderboards_auditevent"),
        protecting("leaderboards_taskrevision"),
    ]
