"""Which reader reads which model_type; and which model types only wrap a text model in another section.

A model_type that is not here is refused by name: that its fields look familiar does not say what its layers keep.
"""

from __future__ import annotations

from aelius_math.config_attention import GEMMA3, Heads, Reader, attention
from aelius_math.config_hybrid import qwen_linear

TEXT: dict[str, Reader] = {
    "llama": attention(Heads(mha=True)),
    "qwen3": attention(Heads(fixed_head_dim=128)),
    "qwen3_moe": attention(),
    "gemma3_text": GEMMA3,
    "qwen3_next": qwen_linear("num_nextn_predict_layers"),
    "qwen3_5_text": qwen_linear("mtp_num_hidden_layers"),
    "qwen3_5_moe_text": qwen_linear("mtp_num_hidden_layers"),
}

WRAPPERS: dict[str, tuple[str, str]] = {
    "gemma3": ("text_config", "gemma3_text"),
    "qwen3_5": ("text_config", "qwen3_5_text"),
    "qwen3_5_moe": ("text_config", "qwen3_5_moe_text"),
}
"""Outer model_type: the section that holds the text model, and its model_type where the section does not say."""
