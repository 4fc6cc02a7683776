"""The network that policy and experience model start from: any Hugging Face causal LM, or a tiny one of our own.

Weights are safetensors, remote code is never run, and a hub model needs a pinned revision. Importing Transformers takes
seconds, so it is imported only when a model is loaded or created.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from models.network.foreign.requirements import require_faithful, require_shape, require_trainable
from models.network.foreign.weights import foreign_weights_of
from models.network.lora import forget_origin, has_adapters, restore_adapters
from models.network.transformer import is_foreign
from models.text.prompts import PromptFormat
from schemas.errors import InputError
from schemas.recipes.networks import TrainingRecipe


@dataclass
class LanguageModel:
    """Causal LM with its tokenizer and prompt format."""

    network: Any
    tokenizer: Any
    format: PromptFormat

    @property
    def num_parameters(self) -> int:
        """Number of distinct weights, including adapters."""
        return sum(p.numel() for p in self.network.parameters())

    @property
    def max_positions(self) -> int:
        """Maximum number of tokens of a stream; the largest there can be, if positions have no end."""
        return getattr(self.network.config.get_text_config(), "max_position_embeddings", None) or sys.maxsize

    def save(self, folder: Path) -> None:
        """Write safetensors, configuration and tokenizer to a folder; with adapters, only their weights are written."""
        self.network.save_pretrained(folder, safe_serialization=True)
        self.tokenizer.save_pretrained(folder)


def load_model(folder_or_id: str | Path, *, revision: str | None = None, random_init: bool = False) -> LanguageModel:
    """Load a model from a folder or a hub id; its weights are bfloat16 if they are stored so, else float32.

    Args:
        folder_or_id: Folder with config.json, *.safetensors and tokenizer, or a hub id.
        revision: Commit of the hub model; required for a hub id, so that a run can be repeated.
        random_init: Use only architecture and tokenizer, with random weights.

    Raises:
        InputError: no model found, no safetensors, a tokenizer of another model, a hub id without revision, or an
            architecture that transformers cannot compute as needed; see `foreign.requirements`.
    """
    from transformers import AutoTokenizer

    is_folder = Path(folder_or_id).is_dir()
    if not is_folder and revision is None:
        raise InputError(
            f"backbone {folder_or_id!r} is not a folder here, and a hub model needs backbone.revision: "
            "give the commit hash so that the run can be repeated"
        )
    arguments = {"revision": revision, "trust_remote_code": False}
    with _errors_explained(folder_or_id):
        tokenizer = AutoTokenizer.from_pretrained(folder_or_id, **arguments)
        network = _network(folder_or_id, random_init, arguments)
    _require_match(folder_or_id, tokenizer, network.config)
    if is_foreign(network):
        require_shape(network)
        require_faithful(foreign_weights_of(network, torch.float32))
    return LanguageModel(network.eval(), tokenizer, PromptFormat(tokenizer, _end_ids(network.generation_config)))


def load_architecture(folder_or_id: str | Path, *, revision: str | None = None) -> tuple[Any, PromptFormat]:
    """Load a model's configuration and prompt format, without its weights.

    Raises:
        InputError: they cannot be loaded.
    """
    from transformers import AutoConfig, AutoTokenizer

    arguments = {"revision": revision, "trust_remote_code": False}
    with _errors_explained(folder_or_id):
        config = AutoConfig.from_pretrained(folder_or_id, **arguments)
        tokenizer = AutoTokenizer.from_pretrained(folder_or_id, **arguments)
    _require_match(folder_or_id, tokenizer, config)
    return config, PromptFormat(tokenizer, _end_ids(config))


def network_without_values(config: Any) -> nn.Module:
    """Return a network of a configuration whose tensors have shapes but no values.

    Raises:
        ValueError: transformers has no causal LM of this kind.
    """
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def require_computable(config: Any, training: TrainingRecipe, num_ranks: int) -> None:
    """Refuse a network that cannot be computed here, before its weights are loaded.

    Args:
        config: Configuration of the network, as in transformers.
        training: Training settings.
        num_ranks: Number of processes that train it together.

    Raises:
        InputError: no causal LM, or an architecture that cannot be computed, or not with these settings.
    """
    try:
        network = network_without_values(config)
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{config.model_type!r} is no causal language model: {reason}") from error
    if is_foreign(network):
        require_shape(network)
        require_trainable(network, training, num_ranks)


def _end_ids(settings: Any) -> list[int]:
    """Return the tokens that end a text by a model's own settings."""
    found = getattr(settings, "eos_token_id", None)
    return [found] if isinstance(found, int) else list(found or ())


@contextmanager
def _errors_explained(folder_or_id: str | Path) -> Iterator[None]:
    """Convert the errors that transformers raises on loading to InputError."""
    try:
        yield
    except (OSError, ValueError) as error:
        if "trust_remote_code" in str(error):
            raise InputError(
                f"backbone {str(folder_or_id)!r} needs Python code of its own, which is never run: choose a model whose "
                "architecture is part of transformers"
            ) from error
        raise InputError(f"backbone {str(folder_or_id)!r} cannot be loaded: {error}") from error


def _require_match(folder_or_id: str | Path, tokenizer: Any, config: Any) -> None:
    last = max(tokenizer.get_vocab().values())
    num_known = config.get_text_config().vocab_size
    if last >= num_known:
        raise InputError(
            f"backbone {str(folder_or_id)!r}: its tokenizer has a token {last}, its network knows {num_known} "
            "tokens from 0: tokenizer and weights are of different models"
        )
    if tokenizer.eos_token_id is None:
        raise InputError(f"backbone {str(folder_or_id)!r}: its tokenizer has no token that ends a text (eos_token)")


def _network(folder_or_id: str | Path, random_init: bool, arguments: dict[str, Any]) -> nn.Module:
    from transformers import AutoConfig, AutoModelForCausalLM

    if random_init:
        torch.manual_seed(0)
        config = AutoConfig.from_pretrained(folder_or_id, **arguments)
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    network = AutoModelForCausalLM.from_pretrained(folder_or_id, use_safetensors=True, dtype="auto", **arguments)
    is_narrow = network.dtype == torch.bfloat16
    if not is_narrow or is_foreign(network):
        network = network.float()
    if has_adapters(network):
        forget_origin(network)
        if is_narrow and Path(folder_or_id).is_dir():
            restore_adapters(network, Path(folder_or_id))
    return network


def new_tiny_model(
    tokenizer: Any, *, hidden_size: int, num_layers: int, num_heads: int, max_positions: int, seed: int
) -> LanguageModel:
    """Create a Qwen3 of about a million weights with random initialisation."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=3 * hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        num_key_value_heads=max(1, num_heads // 2),
        head_dim=hidden_size // num_heads,
        max_position_embeddings=max_positions,
        tie_word_embeddings=True,
        initializer_range=hidden_size**-0.5,  # the usual 0.02 is for wide models; a narrow one would start very slowly
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return LanguageModel(Qwen3ForCausalLM(config).eval(), tokenizer, PromptFormat(tokenizer))
