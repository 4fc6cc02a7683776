"""Precision that is chosen on each device."""

import pytest
import torch

from models.generation.torch_engine import engine_weights
from models.network.precision import matmul_dtype
from tasks.running.device import device_name
from tests.unit.tiny import tiny_network


@pytest.mark.parametrize(
    ("able", "chosen"),
    [
        ({"avx2": True, "avx512_bf16": False, "amx_bf16": False}, torch.float32),
        ({"avx2": True, "avx512_f": True, "avx512_bf16": True}, torch.bfloat16),
        ({"neon": True}, torch.float32),
    ],
)
def test_a_processor_that_only_emulates_bfloat16_computes_in_float32(monkeypatch, able, chosen):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert matmul_dtype("cpu") == chosen
    assert matmul_dtype("cuda:0") == torch.bfloat16
    assert engine_weights(tiny_network()).dtype == chosen


def test_a_processor_is_named_with_what_decides_how_it_sums(monkeypatch):
    able = {"cpu_name": "A Processor", "amx_bf16": True, "avx512_bf16": True, "avx2": True, "arm_bf16": False}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert device_name() == "A Processor amx_bf16 avx512_bf16"
