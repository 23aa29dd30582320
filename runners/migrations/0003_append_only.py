from __future__ import annotations

from django.db import migrations

from runners.append_only import making_the_function, protecting


class Migration(migrations.Migration):
    dependencies = [("runners", "0002_dispatcher_heartbeat")]
    operations = [making_the_function(), protecting("runners_jobevent")]
