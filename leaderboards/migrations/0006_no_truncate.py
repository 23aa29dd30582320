from __future__ import annotations

from django.db import migrations

from runners.append_only import refusing_truncate


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboards", "0005_client_id_waiting"),
        ("runners", "0003_append_only"),
    ]
    # In the order in which the service writes to both, so that neither waits for the other for ever.
    operations = [
        refusing_truncate("leaderboards_taskrevision"),
        refusing_truncate("leaderboards_auditevent"),
    ]
