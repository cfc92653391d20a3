"""What the real llama.cpp is asked: models with the cache geometry of published ones, and flags to start them with.

A toy has the layers, KV heads, head sizes, states and windows of a model, and as little of the rest as the engine
takes: the feed-forward width, the experts and the vocabulary are toys, and so are the embedding and the query heads where
no cache depends on them. `MODELS` gives each its architecture and the keys of its GGUF file.
"""

from __future__ import annotations

from typing import Any

from aelius_math.gguf_config import PLAIN

Keys = dict[str, Any]

COMMON: Keys = {
    "vocab_size": 32, "context_length": 262_144, "embedding_length": 128, "feed_forward_length": 64,
    "attention.layer_norm_epsilon": 1e-5, "attention.layer_norm_rms_epsilon": 1e-6, "rope.dimension_sections": [8, 12, 12, 0],
    "expert_count": 2, "expert_used_count": 2, "expert_feed_forward_length": 32, "expert_shared_count": 1,
    "expert_shared_feed_forward_length": 32, "expert_gating_func": 2, "expert_weights_scale": 1.0, "expert_weights_norm": True,
    "leading_dense_block_count": 1, "interleave_moe_layer_step": 2, "moe_latent_size": 32, "logit_scale": 1.0,
    "residual_scale": 1.0, "embedding_scale": 1.0, "time_mix_extra_dim": 8, "time_decay_extra_dim": 8,
    "attention.decay_lora_rank": 8, "attention.iclr_lora_rank": 8, "attention.value_residual_mix_lora_rank": 8,
    "attention.gate_lora_rank": 8, "attention.relative_buckets_count": 8, "attention.clamp_kqv": 1.0,
    "attention.max_alibi_bias": 8.0, "attention.group_norm_epsilon": 1e-5, "attention.group_norm_groups": 8,
    "use_parallel_residual": False, "expert_group_scale": 1.0, "experts_per_group": 1,
}  # fmt: skip
"""Keys that some architecture wants and no cache depends on; every file has all of them."""


def attends(layers: int, kv_heads: int, head_size: int, **more: Any) -> Keys:
    return {
        "block_count": layers, "attention.head_count": kv_heads, "attention.head_count_kv": kv_heads,
        "attention.key_length": head_size, "attention.value_length": head_size, **spelt(more),
    }  # fmt: skip


def spelt(more: Keys) -> Keys:
    """Keys as a call can name them: two underscores for a dot."""
    return {name.replace("__", "."): value for name, value in more.items()}


def state(kernel: int, inner: int, size: int, heads: int, groups: int | None = None) -> Keys:
    keys = {"ssm.conv_kernel": kernel, "ssm.inner_size": inner, "ssm.state_size": size, "ssm.time_step_rank": heads}
    return keys if groups is None else {**keys, "ssm.group_count": groups}


def delta(k_heads: int, v_heads: int) -> Keys:
    return {"full_attention_interval": 4, "rope.dimension_count": 64, **state(4, 128 * v_heads, 128, v_heads, k_heads)}


def latent(layers: int, heads: int = 2, **more: Any) -> Keys:
    return {
        "block_count": layers, "attention.head_count": heads, "attention.head_count_kv": 1, "attention.key_length": 576,
        "attention.value_length": 512, "attention.key_length_mla": 192, "attention.value_length_mla": 128,
        "attention.kv_lora_rank": 512, "rope.dimension_count": 64, "attention.q_lora_rank": 0, **spelt(more),
    }  # fmt: skip


MTP = {"nextn_predict_layers": 1}
INDEX = {"attention.q_lora_rank": 32, "attention.indexer.head_count": 64, "attention.indexer.key_length": 128,
         "attention.indexer.top_k": 2048}  # fmt: skip

MODELS: dict[str, tuple[str, Keys]] = {
    "llama8b": ("llama", attends(32, 8, 128, expert_count=0, expert_used_count=0)),
    "qwen3-32b": ("qwen3", attends(64, 8, 128)),
    "glm4.5-air": ("glm4moe", attends(47, 8, 128) | MTP),
    "qwen3.5-27b": ("qwen35", attends(65, 4, 256) | delta(16, 48) | MTP),
    "qwen3.5-35b-a3b": ("qwen35moe", attends(41, 2, 256) | delta(16, 32) | MTP),
    "qwen3-next-80b": ("qwen3next", attends(49, 2, 256) | delta(16, 32) | MTP),
    "gemma2-2b": ("gemma2", attends(26, 4, 256, attention__sliding_window=4096)),
    "gemma3-27b": ("gemma3", attends(62, 16, 128, attention__sliding_window=1024)),
    "gemma3n-e4b": (
        "gemma3n",
        attends(35, 2, 256, attention__sliding_window=512, attention__shared_kv_layers=15,
                attention__sliding_window_pattern=([True] * 4 + [False]) * 7, embedding_length_per_layer_input=16),
    ),
    "gemma4-31b": (
        "gemma4",
        attends(60, 4, 512, attention__sliding_window=1024, attention__sliding_window_pattern=([True] * 5 + [False]) * 10,
                attention__key_length_swa=256, attention__value_length_swa=256, attention__shared_kv_layers=0,
                embedding_length_per_layer_input=0)
        | {"attention.head_count": 32, "attention.head_count_kv": ([16] * 5 + [4]) * 10},
    ),
    "gpt-oss-20b": ("gpt-oss", attends(24, 8, 64, attention__sliding_window=128)),
    "llama4-scout": ("llama4", attends(48, 8, 128)),
    "command-r7b": ("cohere2", attends(32, 8, 128, attention__sliding_window=4096, embedding_length=1024)),
    "exaone4-32b": (
        "exaone4",
        attends(64, 8, 128, attention__sliding_window=4096, embedding_length=1024, rope__dimension_count=128),
    ),
    "olmo3-quarter": (
        "olmo2",
        attends(32, 8, 128, attention__sliding_window=4096, attention__sliding_window_pattern=4, embedding_length=1024),
    ),
    "trinity-mini": ("afmoe", attends(56, 2, 128, attention__sliding_window=2048)),
    "step3.5-flash": (
        "step35",
        attends(46, 8, 128, attention__sliding_window=512, attention__head_count=[64] + ([96] * 3 + [64]) * 11 + [96],
                attention__sliding_window_pattern=[False] + ([True] * 3 + [False]) * 11 + [True],
                attention__key_length_swa=128, attention__value_length_swa=128, attention__head_count_kv=[8] * 46)
        | MTP,
    ),
    "laguna-xs": (
        "laguna",
        attends(48, 8, 128, attention__sliding_window=512, attention__sliding_window_pattern=([False] + [True] * 3) * 12,
                attention__head_count=[48] * 48, attention__head_count_kv=[8] * 48, rope__dimension_count=128),
    ),
    "k-exaone-236b": (
        "exaone-moe",
        attends(48, 8, 128, attention__sliding_window=128, embedding_length=1024, rope__dimension_count=128),
    ),
    "mimo-v2-flash": (
        "mimo2",
        attends(48, 4, 192, attention__sliding_window=128, attention__sliding_window_pattern=([False] + [True] * 5) * 8)
        | {"attention.head_count": 64, "attention.head_count_kv": ([4] + [8] * 5) * 8, "attention.value_length": 128},
    ),
    "dsv2lite": ("deepseek2", latent(27)),
    "deepseek-v3": ("deepseek2", latent(62, attention__q_lora_rank=32) | MTP),
    "deepseek-v3.2": ("deepseek32", latent(62) | INDEX | MTP),
    "kimi-linear-48b": (
        "kimi-linear",
        latent(27, 32, attention__head_count_kv=([0, 0, 0, 1] * 7)[:26] + [1], kda__head_dim=128, ssm__conv_kernel=4),
    ),
    "mamba-eighth": (
        "mamba",
        {"block_count": 8, "embedding_length": 4096, "attention.head_count": 0, "attention.head_count_kv": 0}
        | state(4, 8192, 16, 256),
    ),
    "mamba2-eighth": (
        "mamba2",
        {"block_count": 8, "embedding_length": 4096, "attention.head_count": 0, "attention.head_count_kv": 0}
        | state(4, 8192, 128, 128, 8),
    ),
    "jamba-quarter": (
        "jamba",
        attends(32, 8, 128, embedding_length=1024, attention__head_count_kv=([0] * 4 + [8] + [0] * 3) * 4)
        | state(4, 2048, 16, 32),
    ),
    "nemotron-nano-part": (
        "nemotron_h_moe",
        attends(14, 2, 128, feed_forward_length=[0, 64, 0, 64, 0, 0, 64, 0, 64, 0, 64, 0, 0, 64],
                attention__head_count_kv=[0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 2, 2])
        | {"attention.head_count": 32} | state(4, 4096, 128, 64, 8) | MTP,
    ),
    "nemotron-h-part": (
        "nemotron_h",
        attends(13, 8, 128, feed_forward_length=[0, 64, 0, 64, 0, 0, 64, 0, 64, 0, 64, 0, 0],
                attention__head_count_kv=[0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 8])
        | {"attention.head_count": 40} | state(4, 10_240, 128, 128, 8),
    ),
    "granite4-tiny": (
        "granitehybrid",
        attends(40, 8, 128, embedding_length=1536, attention__head_count_kv=([0] * 9 + [8]) * 4)
        | state(4, 3072, 128, 48, 1),
    ),
    "falcon-h1-7b": ("falcon-h1", attends(44, 2, 128) | state(4, 3072, 256, 24, 1)),
    "lfm2-1.2b": (
        "lfm2",
        attends(16, 8, 64, embedding_length=2048, attention__head_count=32, shortconv__l_cache=3,
                attention__head_count_kv=[0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0]),
    ),
    "lfm2-8b-a1b": (
        "lfm2moe",
        attends(24, 8, 64, embedding_length=2048, attention__head_count=32, shortconv__l_cache=3,
                attention__head_count_kv=[0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 8, 0, 0]),
    ),
    "rwkv6-part": (
        "rwkv6", {"block_count": 4, "embedding_length": 2048, "wkv.head_size": 64, "attention.head_count": 0}
    ),
    "rwkv7-part": (
        "rwkv7", {"block_count": 4, "embedding_length": 2048, "wkv.head_size": 64, "attention.head_count": 0}
    ),
}  # fmt: skip
"""Names of published models, where the whole geometry is theirs; -part, -quarter and -eighth say that it is not."""

DIES = {
    ("kimi-linear-48b", "GGML_ASSERT(ggml_can_repeat(b, a)) failed"): "with three slots or more, each with its own cache; seen at b11739",
}
"""Runs on which the engine is known to fail by an assertion of its own: model, assertion, and when. They prove nothing."""

UNASKED = ("apertus",)
"""Architectures that the package reads and that are not asked: they want keys of another form."""

for _arch in sorted(PLAIN - set(UNASKED)):
    MODELS[f"plain-{_arch}"] = (_arch, attends(8, 2, 64, attention__sliding_window=512, rope__dimension_count=64))
# No model's geometry: a window is in the keys, and every layer must keep all tokens all the same.

TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "iq4_nl": 20, "bf16": 30}
"""Cache types and their numbers in ggml.h."""


def run(ctx: int, slots: int = 1, *, kvu: bool = False, ub: int = 512, k: str = "f16", v: str | None = None,
        drafts: int = 0, mtp: bool = False) -> Keys:  # fmt: skip
    """One start, by llama-server's flags: -c, -np, -kvu, -ub, -ctk, -ctv, --spec-draft-n-max; `mtp`: the MTP head's own
    context, whose types are -ctkd and -ctvd."""
    asked: Keys = {"ctx": ctx, "type_k": k, "type_v": v or k, "slots": slots, "kv_unified": kvu, "ubatch": ub}
    return asked | ({"drafts": drafts} if drafts else {}) | ({"mtp": True} if mtp else {})


PLAIN = [
    run(1000, 3), run(4096, 1), run(4096, 10), run(4096, 4, kvu=True), run(3000, 2, ub=256), run(2000, 2, kvu=True, ub=128),
]  # fmt: skip
TYPED = [run(1024, 1, k=name) for name in TYPES if name != "f16"] + [
    run(1024, 1, k=k, v=v) for k, v in (("q8_0", "q4_0"), ("f16", "q8_0"), ("q5_1", "q4_1"), ("q5_0", "iq4_nl"), ("f32", "bf16"))
]
WINDOWS = [
    run(12_288, 1, k="q4_0"), run(12_288, 2, k="q4_0", kvu=True), run(12_288, 2, k="q4_0", ub=256),
    run(12_288, 1, k="q4_0", ub=1024),
]  # fmt: skip
DRAFTS = [run(1024, slots, drafts=drafts) for slots in (1, 2) for drafts in (1, 2, 3)]
HEADS = [run(4096, 2, mtp=True), run(3000, 1, mtp=True, k="q8_0"), run(3000, 2, kvu=True, mtp=True, k="q8_0", v="q4_0")]


OLD_MTP = ("qwen3.5-27b", "qwen3.5-35b-a3b")
"""Models whose MTP layer is loaded without a word by builds that have no load_mtp yet; others lose it there."""


def has_mtp(name: str, old: bool) -> bool:
    return "nextn_predict_layers" in MODELS[name][1] and (not old or name in OLD_MTP)


def keys_of(name: str, old: bool = False) -> Keys:
    """All keys of a model's file. `old`: for a build without load_mtp."""
    keys = COMMON | MODELS[name][1]
    if "nextn_predict_layers" in keys and not has_mtp(name, old):
        n = keys["block_count"] - keys.pop("nextn_predict_layers")
        per_layer = {key: value[:n] for key, value in keys.items() if isinstance(value, list) and len(value) == n + 1}
        keys |= {"block_count": n, **per_layer}
    return keys


def runs_of(name: str, few: bool = False, old: bool = False) -> list[Keys]:
    """What a model is started with: types where it keeps K and V, windows longer than one, drafts where it has a state."""
    arch, keys = MODELS[name]
    if name.startswith("plain-"):
        return [run(4096, 1), run(4096, 2, kvu=True, k="q8_0")]
    has_state = any(key.startswith(("ssm.", "wkv.", "shortconv.")) for key in keys)
    groups = [PLAIN]
    if "attention.key_length" in keys:
        groups.append(TYPED)
    if "attention.sliding_window" in keys or arch == "llama4":
        groups.append(WINDOWS)
    if has_state:
        groups.append(DRAFTS)
    if has_mtp(name, old):
        groups.append(HEADS)
    return [each for group in groups for each in (group[-2:] if few else group)]


def params(asked: Keys) -> Keys:
    """The fields of llama_context_params that stand for llama-server's flags; its windows are not kept in full."""
    return {
        "n_ctx": asked["ctx"], "n_seq_max": asked["slots"], "kv_unified": asked["kv_unified"], "n_ubatch": asked["ubatch"],
        "type_k": TYPES[asked["type_k"]], "type_v": TYPES[asked["type_v"]], "n_rs_seq": asked.get("drafts", 0),
        "ctx_type": int(asked.get("mtp", False)), "swa_full": False,
    }  # fmt: skip
