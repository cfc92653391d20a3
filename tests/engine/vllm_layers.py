"""A case's layers as the engine's own spec classes: by the layers' own get_kv_cache_spec, and by the backends' customize_spec.

What is done here by hand, from the engine's source: heads per card (config/model.py), the backend's smallest block, and
the element sizes of recurrent states, which a case states.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import math
from pathlib import Path
from types import SimpleNamespace

from vllm_extract import functions, methods
from vllm_stubs import DTYPE_OF, DTYPES, MultipleOf, Platform, nvfp4_row

CACHE_DTYPES = {"bf16": "auto", "fp16": "auto"}
BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
RECURRENT = (
    "GatedDeltaNet",
    "KimiDelta",
    "Mamba1",
    "Mamba2",
    "ShortConvolution",
    "LightningAttention",
)
LAYERS = "vllm/model_executor/layers"
INDEX_SCALE_EVERY = 128
FLASHINFER_GDN_CHECKPOINT_ALIGNMENT = 64  # vllm/v1/attention/backends/gdn_attn.py, from 0.33
CHECKPOINTS = ("get_mamba_prefill_checkpoint_alignment", "get_mamba_prefill_checkpoint_grid")


class Layers:
    """The layer classes and backends of one release, as far as they say what a cache holds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.specs = importlib.import_module("vllm.v1.kv_cache_interface")
        self.mamba = importlib.import_module("vllm.model_executor.layers.mamba.mamba_utils")
        self.mamba.is_conv_state_dim_first = lambda: False
        self.given = vars(self.specs) | {
            "replace": dataclasses.replace,
            "functools": functools,
            "lcm": math.lcm,
            "torch": SimpleNamespace(float32=DTYPES[4]),
            "get_dtype_size": lambda dtype: dtype.itemsize,
            "nvfp4_kv_cache_full_dim": nvfp4_row,
            "current_platform": Platform(),
            "AttentionType": SimpleNamespace(DECODER="decoder", ENCODER="encoder", ENCODER_ONLY="encoder_only"),
            "kv_cache_dtype_str_to_dtype": lambda name, model: DTYPES[2] if name == "auto" else DTYPE_OF[name],
            "MultipleOf": MultipleOf,
        }
        attention = self.file(f"{LAYERS}/attention/attention.py")
        self.given |= functions(attention, ("_largest_kernel_block_within",), self.given)
        spec = ("get_kv_cache_spec",)
        self.attention = methods(attention, "Attention", spec, SimpleNamespace, self.given)
        self.chunked = methods(
            self.file(f"{LAYERS}/attention/chunked_local_attention.py"), "ChunkedLocalAttention", spec, SimpleNamespace, self.given
        )
        mla = self.file(f"{LAYERS}/attention/mla_attention.py")
        self.mla = methods(mla, "MLAAttention", spec, SimpleNamespace, self.given)
        indexer = self.file("vllm/model_executor/models/deepseek_v2.py")
        self.indexer = methods(indexer, "DeepseekV32IndexerCache", spec, SimpleNamespace, self.given)
        custom = ("customize_spec",)
        backends = self.root / "vllm/v1/attention/backends"
        plain = methods(self.file("vllm/v1/attention/backend.py"), "AttentionBackend", custom, Backend, self.given)
        self.triton = methods(backends / "triton_attn.py", "TritonAttentionBackend", custom, plain, self.given)
        self.flashinfer = methods(backends / "flashinfer.py", "FlashInferBackend", custom, plain, self.given)
        self.mla_backend = methods(mla, "MLACommonBackend", custom, plain, self.given)
        runner = functions(self.file("vllm/v1/worker/utils.py"), ("customize_attention_spec",), self.given)
        self.customize = runner.get("customize_attention_spec")
        self.kinds = self.recurrent_classes()

    def file(self, path: str) -> Path:
        return self.root / path

    def backend(self, dtype: str, kernel: int, mla: bool) -> Backend:
        """The backend that a layer of this format runs on: FlashInfer keeps nvfp4, Triton the scaled formats."""
        kind = self.mla_backend if mla else self.flashinfer if dtype == "nvfp4" else self.triton
        return kind(kernel, mla)

    def recurrent_classes(self) -> dict[str, type]:
        """The engine's layer class for each kind of recurrent layer; where a class does not say, its base."""
        mixers = f"{LAYERS}/mamba"
        abstract = self.file(f"{mixers}/abstract.py")
        given = self.given | {"get_layers_from_vllm_config": lambda config, kind: dict(enumerate(config.layers))}
        given |= functions(abstract, CHECKPOINTS, given)
        kda = self.file(f"{mixers}/kda_checkpoint.py")
        if not kda.exists():
            kda = self.file("vllm/models/kimi_k3/nvidia/kda.py")
        if kda.exists():
            given |= functions(kda, ("kda_prefill_checkpoint_alignment",), given)
        self.alignment = given.get("get_mamba_prefill_checkpoint_alignment")
        names = ("get_kv_cache_spec", "get_prefill_checkpoint_alignment", "_exports_checkpoints")
        base = methods(abstract, "MambaBase", names, SimpleNamespace, given)
        own = {
            "Mamba2": (f"{mixers}/mamba_mixer2.py", "MambaMixer2"),
            "GatedDeltaNet": (f"{mixers}/gdn/qwen_gdn_linear_attn.py", "QwenGatedDeltaNetAttention"),  # up to 0.21 none of its own
            "KimiDelta": ("vllm/models/kimi_k3/nvidia/kda.py", "KimiK3DeltaAttention"),
        }
        there = {kind: of for kind, of in own.items() if self.file(of[0]).exists()}  # before Kimi K3 its layer had none of its own
        found = {kind: methods(self.file(file), name, names, base, given) for kind, (file, name) in there.items()}
        return dict.fromkeys(RECURRENT, base) | found

    def recurrent(self, layer: dict, config: SimpleNamespace, case: dict) -> object:
        """The engine's layer, told its state; its get_kv_cache_spec counts the blocks that it keeps."""
        shapes, sizes = self.state(layer, case)
        engine = case["engine"]
        exports = engine.get("gdn_prefill_backend") == "flashinfer" and config.cache_config.mamba_cache_mode == "align"
        return self.kinds[layer["kind"]](
            get_state_shape=lambda: shapes,
            get_state_dtype=lambda: tuple(DTYPES[size] for size in sizes),
            mamba_type=None,
            is_kv_cache_tp_replicated=False,
            vllm_config=config,
            kda_prefill_backend=engine.get("kda_prefill_backend") or "triton",
            _checkpoint_alignment=FLASHINFER_GDN_CHECKPOINT_ALIGNMENT if exports else None,
        )

    def state(self, layer: dict, case: dict) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
        """Shapes of a layer's states on one card, by the engine's calculator, and the element sizes that the case states."""
        of, engine = self.mamba.MambaStateShapeCalculator, case["engine"]
        cards, drafts = engine.get("tensor_parallel_size", 1), engine.get("num_speculative_tokens", 0)
        kind, conv = layer["kind"], layer["conv_kernel_size"]
        dtype = case.get("dtype", "bf16")
        conv_bytes = BYTES[layer.get("conv_dtype") or dtype]
        sizes = conv_bytes, BYTES[layer.get("state_dtype") or dtype]
        if kind == "GatedDeltaNet":
            heads = layer["num_k_heads"], layer["num_v_heads"], layer["head_k_dim"], layer["head_v_dim"]
            return of.gated_delta_net_state_shape(cards, *heads, conv, drafts), sizes
        if kind == "KimiDelta":
            heads = layer["num_heads"], layer["head_dim"]
            shapes = of.kda_state_shape(cards, *heads, conv_kernel_size=conv, num_spec=drafts)
            return shapes, (conv_bytes,) * (len(shapes) - 1) + sizes[1:]  # 0.22: a convolution each for q, k and v
        if kind == "Mamba1":
            return of.mamba1_state_shape(cards, layer["intermediate_size"], layer["state_size"], conv), sizes
        if kind == "Mamba2":
            heads = layer["num_heads"], layer["head_dim"], layer["state_size"]
            inner = layer["num_heads"] * layer["head_dim"]
            return of.mamba2_state_shape(cards, inner, layer["n_groups"], *heads, conv, drafts), sizes
        if kind == "LightningAttention":
            return of.linear_attention_state_shape(layer["num_heads"], cards, layer["head_dim"]), sizes[1:]
        takes = of.short_conv_state_shape.__code__.co_varnames
        more = {"num_spec": drafts} if "num_spec" in takes else {}
        return of.short_conv_state_shape(cards, layer["hidden_size"], conv, **more), sizes[:1]

    def attend(self, layer: dict, config: SimpleNamespace, case: dict, kernel: int) -> list[object]:
        """The spec of an attention layer, and of its index keys."""
        engine = case["engine"]
        dtype = engine.get("kv_cache_dtype", "auto")
        name = CACHE_DTYPES.get(dtype, dtype)
        element = DTYPES[2] if name == "auto" else DTYPE_OF[name]
        backend = self.backend(dtype, kernel, layer["kind"] == "MLA")
        common = {"attn_type": "decoder", "kv_cache_dtype": name, "kv_cache_torch_dtype": element, "attn_backend": backend}
        if layer["kind"] == "MLA":
            attention = self.mla(
                **common,
                head_size=layer["kv_lora_rank"] + layer["qk_rope_head_dim"],
                sliding_window=None,
                indexer=None,
                non_causal_multi_token_decode=False,
                topk_buffer_width=None,
                _uses_flat_kv_cache=lambda: False,
            )
            specs = [self.customized(backend, attention.get_kv_cache_spec(config))]
            if layer.get("index_head_dim"):
                width = layer["index_head_dim"] + layer["index_head_dim"] // INDEX_SCALE_EVERY * 4
                keys = self.indexer(head_dim=width, dtype=DTYPES[1], cache_config=config.cache_config)
                specs.append(keys.get_kv_cache_spec(config))
            return specs
        common |= {
            "num_kv_heads": max(1, layer["num_kv_heads"] // engine.get("tensor_parallel_size", 1)),
            "head_size": layer["head_size"],
            "head_size_v": layer.get("head_size_v") or layer["head_size"],
            "sliding_window": layer.get("sliding_window"),
        }
        if layer["kind"] == "ChunkedAttention":
            attention = self.chunked(**common, attention_chunk_size=layer["attention_chunk_size"])
        else:
            attention = self.attention(**common)
        return [self.customized(backend, attention.get_kv_cache_spec(config))]

    def customized(self, backend: Backend, spec: object) -> object:
        """What the model runner does with a layer's spec."""
        if self.customize:
            return self.customize(backend, spec)
        if "indexes_kv_by_block_stride" in type(spec).__dataclass_fields__:  # up to 0.28
            spec = dataclasses.replace(spec, indexes_kv_by_block_stride=not backend.mla)
        return backend.customize_spec(spec)


class Backend:
    """A backend whose kernels take whole multiples of one block size."""

    def __init__(self, kernel: int, mla: bool) -> None:
        self.kernel, self.mla = kernel, mla

    def get_supported_kernel_block_sizes(self, spec: object = None) -> list[MultipleOf]:
        return [MultipleOf(self.kernel)]

    def customize_spec(self, spec: object) -> object:
        """As it is, for a release whose backends do not change it (0.22)."""
        return spec

    def is_mla(self) -> bool:
        return self.mla

    def get_name(self) -> str:
        return "TRITON_MLA" if self.mla else "TRITON_ATTN"
