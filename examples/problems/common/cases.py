"""Case files: one case a line, `key: value` pairs joined by `; `."""

import re

Case = dict[str, int | str]

_PAIR = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*:\s*([+-]?[0-9]+|[A-Za-z_][A-Za-z0-9_.-]*)\s*")


def read_cases(text: str, seed: int | None) -> list[tuple[str, Case]]:
    """Lines with their values; `seed` changes each case's own. Raises ValueError with the line."""
    cases = []
    for line in text.splitlines():
        if line.strip():
            case = read_case(line)
            own = case.get("seed")
            if seed is not None and isinstance(own, int):
                case["seed"] = combine(own, seed)
            cases.append((line.strip(), case))
    return cases


def read_case(line: str) -> Case:
    case: Case = {}
    for part in line.split(";"):
        pair = _PAIR.fullmatch(part)
        if pair is None or pair[1] in case:
            raise ValueError(f"cannot read {part!r} in case {line!r}")
        value = pair[2]
        case[pair[1]] = int(value) if value.lstrip("+-").isdigit() else value
    return case


def combine(case_seed: int, seed: int) -> int:
    """Cantor's pairing: nobody who knows only the case's seed can tell the result."""
    both = case_seed + seed
    return case_seed + both * (both + 1) // 2
