from __future__ import annotations

from django.db import migrations

from runners.append_only import refusing_truncate


class Migration(migrations.Migration):
    dependencies = [("profiling", "0005_list_indexes"), ("runners", "0003_append_only")]
    operations = [refusing_truncate("profiling_review")]
