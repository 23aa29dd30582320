from __future__ import annotations

from django.db import migrations

from runners.append_only import refusing_truncate


class Migration(migrations.Migration):
    dependencies = [("runners", "0005_bell")]
    operations = [refusing_truncate("runners_jobevent")]
