"""The geometries that the llama.cpp golden files name, by hand (layers, KV heads, head size)."""

import json
from pathlib import Path

from aelius_math.cache import MLA, FullAttention, GatedDeltaNet, SlidingWindow
from aelius_math.model import Model

GOLDEN = Path(__file__).parent.parent / "golden"


def golden(name):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


def full(layers, heads, size):
    return FullAttention(num_layers=layers, num_kv_heads=heads, head_size=size)


def slides(layers, heads, size, window):
    return SlidingWindow(num_layers=layers, num_kv_heads=heads, head_size=size, sliding_window=window)


def delta(layers, k_heads, v_heads):
    return GatedDeltaNet(
        num_layers=layers,
        num_k_heads=k_heads,
        num_v_heads=v_heads,
        head_k_dim=128,
        head_v_dim=128,
        conv_kernel_size=4,
    )


LAYERS = {
    "qwen35-27b": (full(16, 4, 256), delta(48, 16, 48)),
    "llama8b": (full(32, 8, 128),),
    "qwen3-32b": (full(64, 8, 128),),
    "gemma3-27b": (full(10, 16, 128), slides(52, 16, 128, 1024)),
    "dsv2lite": (MLA(num_layers=27, kv_lora_rank=512, qk_rope_head_dim=64),),
    "qwen3.5/3.6/3.8-27B": (full(16, 4, 256), delta(48, 16, 48)),
    "qwen3.5-9B": (full(8, 4, 256), delta(24, 16, 32)),
    "qwen3.x-35B-A3B": (full(10, 2, 256), delta(30, 16, 32)),
    "qwen3.5-122B-A10B": (full(12, 2, 256), delta(36, 16, 64)),
    "mtp-head": (full(1, 4, 256),),
    "qwen2.5-3b": (full(36, 2, 128),),
    "command-r-35b": (full(40, 64, 128),),
    "gpt-oss-20b": (full(12, 8, 64), slides(12, 8, 64, 128)),
    "gemma4-12b": (full(8, 1, 512), slides(40, 8, 256, 1024)),
    "laguna": (full(12, 8, 128), slides(36, 8, 128, 512)),
    "trinity-nano": (full(14, 2, 128),),
}

QWEN_27B = Model(
    name="Qwen3.8-27B",
    layers=LAYERS["qwen35-27b"],
    mtp_layers=LAYERS["mtp-head"],
    max_position_embeddings=262_144,
)


def model(name):
    return Model(name=name, layers=LAYERS[name])


def printed(size):
    """A size as llama.cpp's log prints it: MiB to 0.01."""
    return float(f"{size / 2**20:.2f}")
