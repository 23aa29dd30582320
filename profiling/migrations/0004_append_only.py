from __future__ import annotations

from django.db import migrations

from runners.append_only import protecting


class Migration(migrations.Migration):
    dependencies = [("profiling", "0003_review"), ("runners", "0003_append_only")]
    operations = [protecting("profiling_review")]
