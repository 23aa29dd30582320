from __future__ import annotations

from django.db import migrations

from runners.bell import hanging_the_bell


class Migration(migrations.Migration):
    dependencies = [("runners", "0004_dispatcher_turn")]
    operations = [hanging_the_bell()]
