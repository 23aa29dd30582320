from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runners", "0003_append_only")]
    operations = [
        migrations.CreateModel(
            name="DispatcherTurn",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("token", models.CharField(blank=True, max_length=32)),
                ("until", models.DateTimeField()),
            ],
        ),
    ]
