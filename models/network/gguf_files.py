"""Models in GGUF files: quantised weights, tokenizer and chat template in one file."""

import struct
from pathlib import Path

import torch

from schemas.errors import InputError

_BROKEN = (OSError, ValueError, TypeError, LookupError, RuntimeError, struct.error)
"""Errors of the reader for files that are cut off, of another kind, or of a model that it does not know."""


def convert_gguf(file: Path, folder: Path) -> None:
    """Write the model of a GGUF file to a folder as safetensors, dequantised to float32, with its tokenizer.

    Raises:
        InputError: the package gguf is missing, or the file holds no causal LM that transformers knows.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        loaded = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    except ImportError as error:
        raise InputError(f"{file} is a GGUF file: pip install 'dreamgym[gguf]' to read it ({error})") from error
    except _BROKEN as error:
        raise InputError(f"{file} cannot be converted: {error}") from error
    if hasattr(loaded.config, "quantization_config"):
        delattr(loaded.config, "quantization_config")  # with it, the network would not be saved
    plain = AutoModelForCausalLM.from_config(loaded.config)
    plain.load_state_dict(loaded.state_dict())
    plain.generation_config = loaded.generation_config
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
