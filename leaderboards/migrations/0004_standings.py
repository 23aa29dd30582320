from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Exists, F, OuterRef, Window
from django.db.models.functions import RowNumber


def stand_as_ranked_today(apps, schema_editor):
    """Everybody's best run, as the ranking found it until now."""
    Run, Standing = (apps.get_model("leaderboards", name) for name in ("Run", "Standing"))
    secret = Run.objects.filter(
        submission=OuterRef("submission"), secret=True, gpu=OuterRef("gpu")
    ).order_by()
    qualifying = Run.objects.filter(
        Exists(secret.filter(mode="leaderboard", passed=True)),
        ~Exists(secret.filter(passed=False)),
        secret=False,
        score__isnull=False,
        submission__verdict="",
        submission__deleted_at__isnull=True,
    )
    place = ("leaderboard_id", "gpu", "user_id")
    nth = Window(RowNumber(), partition_by=place, order_by=[F("score").asc(), F("pk").asc()])
    best = qualifying.annotate(nth=nth).filter(nth=1).order_by()
    Standing.objects.bulk_create(
        (
            Standing(leaderboard_id=board, gpu=gpu, user_id=user, run_id=run, score=score)
            for board, gpu, user, run, score in best.values_list(*place, "pk", "score").iterator()
        ),
        batch_size=1000,
    )


class Migration(migrations.Migration):
    dependencies = [("leaderboards", "0003_append_only")]
    operations = [
        migrations.CreateModel(
            name="Standing",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("gpu", models.CharField(max_length=64)),
                ("score", models.FloatField(blank=True, null=True)),
                (
                    "leaderboard",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="standings",
                        to="leaderboards.leaderboard",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="leaderboards.run",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("leaderboard", "gpu", "user"), name="standing_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("run__isnull", True), ("score__isnull", True)),
                            models.Q(("run__isnull", False), ("score__isnull", False)),
                            _connector="OR",
                        ),
                        name="standing_score_is_of_a_run",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("run__isnull", False)),
                        fields=["leaderboard", "gpu", "score", "run"],
                        name="standing_order",
                    )
                ],
            },
        ),
        migrations.RunPython(stand_as_ranked_today, migrations.RunPython.noop),
    ]
