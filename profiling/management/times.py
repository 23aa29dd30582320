"""Times as commands take them."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import datetime

from django.utils.dateparse import parse_date, parse_datetime
from django.utils.timezone import is_naive, make_aware


def read_time(text: str) -> datetime:
    """A date or a time in ISO 8601, in UTC where it says no other zone; for argparse."""
    try:
        if (day := parse_date(text)) is not None:
            return make_aware(datetime(day.year, day.month, day.day))  # noqa: DTZ001
        given = parse_datetime(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text}: there is no such time") from error
    if given is None:
        raise ArgumentTypeError(f"{text}: a date or a time in ISO 8601 is wanted")
    return make_aware(given) if is_naive(given) else given
