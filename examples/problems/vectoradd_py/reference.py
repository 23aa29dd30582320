"""The problem: what goes in, and what must come out."""

import torch


def generate_input(size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two float32 vectors on the GPU, the same for the same seed."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return (
        torch.randn(size, generator=generator, device="cuda"),
        torch.randn(size, generator=generator, device="cuda"),
    )


def check(data: tuple[torch.Tensor, torch.Tensor], output: object) -> str:
    """What is wrong with `output`, empty when nothing is. `data` is as it was before the call."""
    expected = data[0] + data[1]
    if not isinstance(output, torch.Tensor):
        return f"a tensor was expected, got {type(output).__name__}"
    if output.shape != expected.shape or output.dtype != expected.dtype:
        return (
            f"{expected.dtype} of shape {tuple(expected.shape)} was expected, "
            f"got {output.dtype} of shape {tuple(output.shape)}"
        )
    if output.device != expected.device:
        return f"the result must be on {expected.device}, not on {output.device}"
    wrong = (output != expected).nonzero()
    if len(wrong) == 0:
        return ""
    first = int(wrong[0])
    return (
        f"{len(wrong)} of {len(expected)} elements differ, the first at {first}: "
        f"expected {float(expected[first])}, got {float(output[first])}"
    )
