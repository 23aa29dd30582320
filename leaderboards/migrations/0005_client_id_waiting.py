from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("leaderboards", "0004_standings")]
    operations = [
        migrations.AddIndex(
            model_name="clientid",
            index=models.Index(
                fields=["issued_at"],
                name="client_id_waiting",
                condition=models.Q(("activated_at__isnull", True)),
            ),
        ),
    ]
