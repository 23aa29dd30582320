from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("leaderboards", "0006_no_truncate")]
    operations = [
        migrations.AddIndex(
            model_name="submission",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", True)),
                fields=["user", "-id"],
                name="submission_own",
            ),
        ),
    ]
