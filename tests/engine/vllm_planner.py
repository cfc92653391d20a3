"""Runs vLLM's own planner, from an unpacked source release, without torch and without a GPU.

    python tests/engine/vllm_planner.py DIR VERSION < cases.jsonl > planned.jsonl

DIR holds the release's `vllm/` folder (the sdist, unpacked). What runs is the engine's: kv_cache_utils.py
(get_kv_cache_configs and the functions under it), kv_cache_interface.py (the spec classes), from 0.20 on
_align_hybrid_block_size of platforms/interface.py, and the backends' customize_spec where the release has it. Stubs:
torch (dtypes with their sizes), and every other module of vllm, as an empty object. The configuration is a plain object
with the fields that the planner reads.

A case is a JSON object: available (bytes), max_model_len, in_flight (tokens), mode, drafts, block_size, kernel,
manager (hybrid manager on), override, retained, layers. A layer: spec (class name), n, and for attention heads, head,
head_v, dtype_bytes, quant, window or chunk; for recurrent layers shapes [[...], ...] and bytes [...]; block ("kernel" or
"config").
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

REAL = (
    "vllm.v1.core.kv_cache_utils",
    "vllm.v1.kv_cache_interface",
    "vllm.v1.kv_cache_spec_registry",
    "vllm.v1.kv_cache_layout",
    "vllm.utils.math_utils",
    "vllm.platforms.interface",
    "vllm.model_executor.models.config",
)


class DType:
    """A torch dtype as the planner sees it: its size."""

    def __init__(self, itemsize: int) -> None:
        self.itemsize = itemsize

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DType) and other.itemsize == self.itemsize

    def __hash__(self) -> int:
        return self.itemsize

    def __deepcopy__(self, memo: object) -> DType:
        return self


DTYPES = {1: DType(1), 2: DType(2), 4: DType(4)}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the real files of REAL from DIR; any other module of vllm or torch is an empty object."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ("vllm", "torch", "cbor2", "regex", "psutil", "prometheus_client"):
            return None
        if name in REAL:
            file = self.root / (name.replace(".", "/") + ".py")
            if file.exists():
                return importlib.machinery.ModuleSpec(
                    name, importlib.machinery.SourceFileLoader(name, str(file))
                )
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = Stub(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        name = module.__name__
        if name == "vllm.utils.torch_utils":
            module.get_dtype_size = lambda dtype: dtype.itemsize
            module.nvfp4_kv_cache_full_dim = lambda head: head // 2 + head // 16
            names = ("float16", "bfloat16", "float32"), ("fp8", "fp8_e4m3", "int8_per_token_head")
            module.STR_DTYPE_TO_TORCH_DTYPE = {n: DTYPES[4 if n == "float32" else 2] for n in names[0]}
            one_byte = (*names[1], "fp8_per_token_head", "int4_per_token_head", "nvfp4", "fp8_ds_mla")
            module.STR_DTYPE_TO_TORCH_DTYPE |= {n: DTYPES[1] for n in one_byte}
        if name == "vllm.v1.attention.backend":
            module.MultipleOf = type(
                "MultipleOf", (), {"__init__": lambda self, base: setattr(self, "base", base)}
            )
        if name == "torch":
            module.float32, module.float16, module.bfloat16, module.uint8 = (
                DTYPES[4],
                DTYPES[2],
                DTYPES[2],
                DTYPES[1],
            )
            module.dtype = DType
        if name == "vllm.platforms":  # not a Blackwell card, that 0.17 aligns otherwise
            module.current_platform = types.SimpleNamespace(is_device_capability_family=lambda family: False)
        if name == "vllm.utils.mem_utils":
            module.format_gib = lambda size: f"{size / 2**30:.2f}"


class Stub(types.ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class Run:
    """One release's planner."""

    def __init__(self, root: Path) -> None:
        self.root = root
        sys.meta_path.insert(0, Finder(root))
        self.utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
        self.specs = importlib.import_module("vllm.v1.kv_cache_interface")
        registry = getattr(self.utils, "KVCacheSpecRegistry", None)
        if registry is not None:  # the engine does this beside its cache managers, with the same base classes
            own = (
                "FullAttentionSpec",
                "SlidingWindowSpec",
                "ChunkedLocalAttentionSpec",
                "MambaSpec",
                "MLAAttentionSpec",
            )
            for name in own:
                base = "FullAttentionSpec" if name == "MLAAttentionSpec" else name
                kind, base_kind = getattr(self.specs, name), getattr(self.specs, base)
                registry.register(kind, object, uniform_type_base_spec=base_kind)

    def spec(self, layer: dict, case: dict):
        kind = getattr(self.specs, layer["spec"])
        if layer["spec"] == "MambaSpec":
            return kind(
                block_size=layer["block_size"],
                shapes=tuple(tuple(shape) for shape in layer["shapes"]),
                dtypes=tuple(DTYPES[size] for size in layer["bytes"]),
                page_size_padded=layer["padded"],
                mamba_cache_mode=case["mode"],
                num_speculative_blocks=case["drafts"],
            )
        fields = {
            "block_size": layer["block_size"],
            "num_kv_heads": layer["heads"],
            "head_size": layer["head"],
            "dtype": DTYPES[layer["dtype_bytes"]],
        }
        known = kind.__dataclass_fields__
        if "head_size_v" in known and layer["spec"] != "MLAAttentionSpec":
            fields["head_size_v"] = layer["head_v"]
        if "kv_quant_mode" in known:
            fields["kv_quant_mode"] = self.specs.get_kv_quant_mode(layer["quant"])
        if "cache_dtype_str" in layer:  # index keys have none
            fields["cache_dtype_str"] = layer["cache_dtype_str"]
            if layer["cache_dtype_str"] == "fp8_ds_mla" and "state_content_bytes" in known:
                fields["state_content_bytes"] = 656
        if "indexes_kv_by_block_stride" in known:
            fields["indexes_kv_by_block_stride"] = layer["spec"] != "MLAAttentionSpec"
        if "window" in layer:
            fields["sliding_window"] = layer["window"]
        if "chunk" in layer:
            fields["attention_chunk_size"] = layer["chunk"]
        return self.customized(kind(**fields), layer)

    def customized(self, spec, layer: dict):
        """What a backend's customize_spec adds from 0.27 on: scales in each head's content, nvfp4's packed heads."""
        if (
            "state_content_bytes" not in type(spec).__dataclass_fields__
            or spec.state_content_bytes is not None
        ):
            return spec
        replace = importlib.import_module("dataclasses").replace
        mode, quant = spec.kv_quant_mode, layer["quant"]
        if mode.is_per_token_head:
            halves = 2 if quant.startswith("int4") else 1
            content = spec.head_size // halves + spec.head_size_v // halves
            return replace(spec, state_content_bytes=content * spec.dtype.itemsize + 2 * 4)
        if mode.is_nvfp4:
            head = spec.head_size // 2 + spec.head_size // 16
            return replace(spec, num_head_slots=2 * spec.num_kv_heads, state_content_bytes=head)
        return spec

    def plan(self, case: dict) -> dict:
        layout = None
        if (self.root / "vllm/v1/kv_cache_layout.py").exists():  # from 0.29; one that every model admits
            layout = importlib.import_module("vllm.v1.kv_cache_layout").KVCacheLayout.LBNHC
        config = types.SimpleNamespace(
            model_config=types.SimpleNamespace(
                max_model_len=case["max_model_len"], original_max_model_len=case["max_model_len"]
            ),
            parallel_config=types.SimpleNamespace(
                decode_context_parallel_size=1, prefill_context_parallel_size=1
            ),
            scheduler_config=types.SimpleNamespace(
                disable_hybrid_kv_cache_manager=not case["manager"], max_num_batched_tokens=case["in_flight"]
            ),
            cache_config=types.SimpleNamespace(
                num_gpu_blocks_override=case["override"],
                mamba_cache_mode=case["mode"],
                block_size=case["block_size"],
                get_resolved_kv_cache_layout=lambda: layout,
                prefix_cache_retention_interval=None,
            ),
            speculative_config=types.SimpleNamespace(
                num_speculative_tokens=case["retained"] + 1,
                use_multi_module_mtp=lambda: case["retained"] > 0,
                use_eagle=lambda: False,
            ),
            kv_transfer_config=None,
            max_in_flight_tokens=case["in_flight"],
        )
        specs = {}
        for number, layer in enumerate(case["layers"]):
            for index in range(layer["n"]):
                specs[f"{number}.{index}"] = self.spec(layer, case)
        try:
            planned = self.utils.get_kv_cache_configs(config, [specs], [case["available"]])[0]
        except (ValueError, NotImplementedError, AssertionError) as error:
            return self.refusal(error)
        concurrency = self.utils.get_max_concurrency_for_kv_cache_config(config, planned)
        groups = planned.kv_cache_groups
        if hasattr(self.utils, "get_kv_cache_capacity"):
            tokens = self.utils.get_kv_cache_capacity(config, planned)[0]
        else:  # 0.20.1 to 0.23 log it inside a function that returns nothing
            tokens = None
        return {
            "num_blocks": planned.num_blocks,
            "max_concurrency": concurrency,
            "tokens": tokens,
            "groups": [
                [type(g.kv_cache_spec).__name__, len(g.layer_names), g.kv_cache_spec.block_size]
                for g in groups
            ],
        }

    def block_size(self, case: dict) -> dict:
        """The engine's own block size for a hybrid: {"kv_cache_dtype", "heads", "head", "mla", "kernel", "shapes", ...}."""
        state_shapes = [tuple(shape) for shape in case["shapes"]]
        model_class = types.SimpleNamespace(
            get_mamba_state_shape_from_config=lambda config: state_shapes,
            get_mamba_state_dtype_from_config=lambda config: tuple(DTYPES[size] for size in case["bytes"]),
        )
        registry = types.SimpleNamespace(resolve_model_cls=lambda *args, **kwargs: (model_class, None))
        importlib.import_module("vllm.model_executor.models").ModelRegistry = registry
        cache = types.SimpleNamespace(
            cache_dtype=case["kv_cache_dtype"],
            block_size=case["asked"] or 16,
            mamba_block_size=None,
            user_specified_mamba_block_size=False,
            mamba_cache_mode=case["mode"],
            mamba_page_size_padded=None,
            kv_cache_dtype_skip_layers=[],
            calculate_kv_scales=False,
            enable_prefix_caching=case["mode"] != "none",
        )
        model = types.SimpleNamespace(
            dtype=DTYPES[2],
            use_mla=case["mla"],
            architecture="toy",
            max_model_len=1 << 20,
            get_num_kv_heads=lambda parallel: case["heads"],
            get_head_size=lambda: case["head"],
            get_mamba_chunk_size=lambda: case["chunk"],
            supports_mamba_prefix_caching=True,
            model="toy",
        )
        config = types.SimpleNamespace(
            cache_config=cache,
            model_config=model,
            parallel_config=None,
            speculative_config=None,
            attention_config=types.SimpleNamespace(backend=None),
            scheduler_config=types.SimpleNamespace(enable_chunked_prefill=True),
        )
        interface = importlib.import_module("vllm.platforms.interface")
        if not hasattr(interface.Platform, "_align_hybrid_block_size"):
            models = importlib.import_module("vllm.model_executor.models.config")
            models.ModelRegistry = registry
            models.HybridAttentionMambaModelConfig.verify_and_update_config(config)
            return {"block_size": cache.block_size}
        multiple = importlib.import_module("vllm.v1.attention.backend").MultipleOf
        backend = types.SimpleNamespace(
            get_supported_kernel_block_sizes=lambda: [multiple(case["kernel"])],
            customize_spec=lambda spec: self.customized(spec, {"quant": case["kv_cache_dtype"]}),
        )
        interface.Platform._align_hybrid_block_size(config, backend)
        return {"block_size": cache.block_size}

    @staticmethod
    def refusal(error: Exception) -> dict:
        text = str(error)
        if "KV cache is needed" not in text.replace("\n", " "):
            return {"error": "other", "text": text[:120]}
        longest = text.partition("estimated maximum model length is ")[2].partition(".")[0]
        needed = text.partition("), (")[2].partition(" ")[0]
        return {
            "error": "not enough",
            "estimated_max_model_len": int(longest or 0),
            "needed_gib": float(needed),
        }


def main() -> None:
    run = Run(Path(sys.argv[1]))
    for line in sys.stdin:
        case = json.loads(line)
        print(json.dumps(run.block_size(case) if "shapes" in case else run.plan(case)), flush=True)


if __name__ == "__main__":
    main()
