#!POPCORN leaderboard rowsum_cpu
#!POPCORN gpu CPU


def custom_kernel(rows: list[list[float]]) -> list[float]:
    return [sum(row) for row in rows]
