"""Tiny random networks for tests."""

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    JambaConfig,
    Lfm2Config,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    OPTConfig,
    Phi3Config,
    Qwen2Config,
    Qwen2MoeConfig,
    Qwen3Config,
    Qwen3MoeConfig,
    SmolLM3Config,
)

_KINDS = {"llama": LlamaConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}
_YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10_000.0}
_WINDOW = ["sliding_attention", "full_attention"]
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_FOREIGN = {
    "gemma3": (Gemma3TextConfig, {"sliding_window": 6, "layer_types": _WINDOW, "final_logit_softcapping": 3.0}),
    "mistral": (MistralConfig, {"sliding_window": 6}),
    "phi3": (Phi3Config, {}),
    "smollm3": (SmolLM3Config, {}),
    "lfm2": (Lfm2Config, {"layer_types": ["conv", "full_attention"]}),
    "qwen3-moe": (Qwen3MoeConfig, _EXPERTS),
    "opt": (OPTConfig, {"ffn_dim": 64, "word_embed_proj_dim": 32, "init_std": 0.2}),
    "mamba": (MambaConfig, {"state_size": 8}),
    "yarn": (Qwen3Config, {"rope_parameters": _YARN}),
    "window": (Qwen2Config, {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 0}),
    "qwen2-moe": (Qwen2MoeConfig, _EXPERTS | {"shared_expert_intermediate_size": 16}),
    "jamba": (JambaConfig, {"num_experts": 2, "mamba_d_state": 8, "attn_layer_period": 2, "attn_layer_offset": 1}),
    "biased": (LlamaConfig, {"mlp_bias": True, "attention_bias": True}),
}
"""Architectures and settings that transformers computes, with windows shorter than the streams of tests."""
FOREIGN = tuple(_FOREIGN)


def tiny_network(seed: int = 0, kind: str = "qwen3", vocab_size: int = 64, num_hidden_layers: int = 2, **more):
    torch.manual_seed(seed)
    config_class, own = _FOREIGN[kind] if kind in _FOREIGN else (_KINDS[kind], {})
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
        **own | more,
    )
    return AutoModelForCausalLM.from_config(config).eval()


def true_logprobs(network, ids: list[int]) -> torch.Tensor:
    """Return the log-probabilities of every token after each of these, by the network's own forward pass."""
    with torch.no_grad():
        return torch.log_softmax(network(torch.tensor([ids])).logits[0].float(), -1)
