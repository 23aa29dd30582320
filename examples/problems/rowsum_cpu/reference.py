"""The problem: what goes in, and what must come out."""

import math
import random

RELATIVE_TOLERANCE = 1e-9


def generate_input(rows: int, cols: int, seed: int) -> list[list[float]]:
    """A matrix by rows with values between 0 and 1, the same for the same seed."""
    source = random.Random(seed)
    return [[source.random() for _ in range(cols)] for _ in range(rows)]


def check(data: list[list[float]], output: object) -> str:
    """What is wrong with `output`, empty when nothing is. `data` is as it was before the call."""
    if not isinstance(output, list) or not all(isinstance(value, float) for value in output):
        return f"a list of float was expected, got {type(output).__name__}"
    if len(output) != len(data):
        return f"{len(data)} sums were expected, got {len(output)}"
    for index, (row, value) in enumerate(zip(data, output, strict=True)):
        expected = math.fsum(row)
        if not math.isclose(value, expected, rel_tol=RELATIVE_TOLERANCE):
            return f"mismatch at row {index}\nexpected {expected}, got {value}"
    return ""
