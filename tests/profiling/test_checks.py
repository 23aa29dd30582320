from __future__ import annotations

import pytest

from profiling.checks import check_launch_count


def test_the_default_configuration_is_right():
    assert check_launch_count() == []


@pytest.mark.parametrize("count", [0, -1, 2**31])
def test_a_launch_count_that_no_row_can_hold_is_named(settings, count):
    settings.LAUNCH_COUNT_MAX = count

    [error] = check_launch_count()

    assert error.id == "profiling.E001"
    assert str(count) in error.msg
