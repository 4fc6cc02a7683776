"""Precision of matrix products. Trained weights and losses are float32 everywhere; a frozen base keeps its dtype."""

import torch


def matmul_dtype(device: torch.device | str) -> torch.dtype:
    """Return bfloat16 if the device multiplies it natively, else float32.

    A processor without bfloat16 instructions emulates them, which was measured to take 45 times as long as float32.
    """
    on_processor = torch.device(device).type == "cpu"
    return torch.float32 if on_processor and not _processor_multiplies_bfloat16() else torch.bfloat16


def _processor_multiplies_bfloat16() -> bool:
    able = torch.cpu.get_capabilities()  # keys are instruction sets: amx_bf16, avx512_bf16, arm_bf16
    return torch.backends.mkldnn.is_available() and any(able[name] for name in able if "bf16" in name)
