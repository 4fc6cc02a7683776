"""Tiny random networks for tests."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

_KINDS = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}


def tiny_network(seed: int = 0, kind: str = "qwen3", vocab_size: int = 64, num_hidden_layers: int = 2, **more):
    torch.manual_seed(seed)
    config_class, model_class = _KINDS[kind]
    config = config_class(
        vocab_size=vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.2,
        eos_token_id=0,
        pad_token_id=0,
        bos_token_id=None,
        **more,
    )
    return model_class(config).eval()


def true_logprobs(network, ids: list[int]) -> torch.Tensor:
    """Return the log-probabilities of every token after each of these, by the network's own forward pass."""
    with torch.no_grad():
        return torch.log_softmax(network(torch.tensor([ids])).logits[0].float(), -1)
