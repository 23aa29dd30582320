#!POPCORN leaderboard vectoradd
#!POPCORN gpu B200

import torch


def custom_kernel(data: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    a, b = data
    return a + b
