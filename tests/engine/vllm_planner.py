"""Runs vLLM's own planner, from an unpacked source release, without torch and without a GPU.

    python tests/engine/vllm_planner.py DIR < cases.jsonl > planned.jsonl

DIR holds the release's `vllm/` folder (the sdist, unpacked), 0.20 or newer. A case is one of tests/golden/vllm_planner/
without `planned`; its answer is that field. What runs is the engine's: the planner (v1/core/kv_cache_utils.py, from 0.33
kv_cache_planning.py), the spec classes (v1/kv_cache_interface.py), _align_hybrid_block_size (platforms/interface.py), and
by tests/engine/vllm_layers.py what the layers and the backends give the planner. Stubs: tests/engine/vllm_stubs.py. The
configuration is a plain object with the fields that the planner reads.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from itertools import groupby
from pathlib import Path
from unittest.mock import MagicMock

from vllm_layers import RECURRENT, Layers
from vllm_stubs import DTYPES, Finder

DRAFTLESS = ("ngram", "suffix")
HYBRIDS_DO_NOT = {
    "vllm/config/model.py": "Hybrid models do not support prefix caching",  # up to 0.25
    "vllm/engine/arg_utils.py": "is_prefix_caching_supported and not model_config.is_hybrid",  # 0.26 and 0.27
}
"""Where a release says that hybrids do not cache prefixes by default."""
OWN = ("FullAttentionSpec", "SlidingWindowSpec", "ChunkedLocalAttentionSpec", "MambaSpec", "MLAAttentionSpec")


class Run:
    """One release's planner."""

    def __init__(self, root: Path) -> None:
        sys.meta_path.insert(0, Finder(root))
        self.utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
        self.planning = self.utils
        if (root / "vllm/v1/core/kv_cache_planning.py").exists():  # from 0.33
            self.planning = importlib.import_module("vllm.v1.core.kv_cache_planning")
        self.specs = importlib.import_module("vllm.v1.kv_cache_interface")
        self.interface = importlib.import_module("vllm.platforms.interface")
        self.layout = None
        if (root / "vllm/v1/kv_cache_layout.py").exists():  # from 0.29; the first that every backend without a wish admits
            self.layout = importlib.import_module("vllm.v1.kv_cache_layout").KVCacheLayout.LBNHC
        registry = importlib.import_module("vllm.v1.kv_cache_spec_registry").KVCacheSpecRegistry
        for name in OWN:  # the engine does this beside its cache managers, with the same base classes
            base = "FullAttentionSpec" if name == "MLAAttentionSpec" else name
            kind, base_kind = getattr(self.specs, name), getattr(self.specs, base)
            registry.register(kind, object, uniform_type_base_spec=base_kind)
        self.layers = Layers(root)
        self.logs_only = "def get_kv_cache_capacity" not in (root / "vllm/v1/core/kv_cache_utils.py").read_text("utf-8")
        self.caches_hybrids = not any(text in (root / file).read_text("utf-8") for file, text in HYBRIDS_DO_NOT.items())

    def plan(self, case: dict) -> dict:
        """The planner's answer to a case, in the fields of the golden file."""
        settings = Settings(case, self.caches_hybrids)
        config = settings.config(self.layout)
        try:
            own = self.specs_of(case["layers"], case, config, settings, align=True)
            own |= self.specs_of(settings.drafted, case, config, settings, align=False)
            planned = self.configs(config, own, case["available_bytes"])
        except (ValueError, NotImplementedError, AssertionError) as error:
            return refusal(error)
        tokens, concurrency = self.capacity(config, planned)
        groups = [
            (type(group.kv_cache_spec).__name__, len(group.layer_names), group.kv_cache_spec.block_size)
            for group in planned.kv_cache_groups
        ]
        answer = {
            "num_blocks": planned.num_blocks,
            "max_concurrency": concurrency,
            "tokens": tokens,
            "groups": [[*group, len(list(alike))] for group, alike in groupby(groups)],
        }
        return answer | ({"block_size": config.cache_config.block_size} if settings.hybrid else {})

    def capacity(self, config: types.SimpleNamespace, planned: object) -> tuple[int, float]:
        """Tokens and concurrency; a release without a function for both (0.22) logs the tokens, so its log line is read."""
        if not self.logs_only:
            return self.utils.get_kv_cache_capacity(config, planned)
        said = []
        self.utils.logger = types.SimpleNamespace(info_once=lambda text, *given: said.append((text, given)))
        self.utils._report_kv_cache_config(config, planned)
        self.utils.logger = MagicMock()
        (tokens,) = [given[0] for text, given in said if text.startswith("GPU KV cache size")]
        return int(tokens.replace(",", "")), self.utils.get_max_concurrency_for_kv_cache_config(config, planned)

    def configs(self, config: types.SimpleNamespace, specs: dict[str, object], available: int) -> object:
        if self.planning is self.utils:
            return self.utils.get_kv_cache_configs(config, [specs], [available])[0]
        groups = self.planning.get_global_kv_cache_groups(config, [specs])
        return self.planning.get_kv_cache_configs(config, [specs], [available], groups)[0]

    def specs_of(self, layers: list[dict], case: dict, config, settings: Settings, align: bool) -> dict[str, object]:
        """One spec for each layer, by name; `align` chooses the block size of a hybrid first, as the engine does."""
        recurrent = {id(layer): self.layers.recurrent(layer, config, case) for layer in layers if layer["kind"] in RECURRENT}
        if align:
            config.layers = list(recurrent.values())
            if settings.hybrid:
                self.align(config, case, settings)
        specs = {}
        for number, layer in enumerate(layers):
            if id(layer) in recurrent:
                made = [recurrent[id(layer)].get_kv_cache_spec(config)]
            else:
                made = self.layers.attend(layer, config, case, settings.kernel_of(layer))
            for index in range(layer["num_layers"]):
                for part, spec in enumerate(made):
                    specs[f"{'layer' if align else 'draft'}.{number}.{index}.{part}"] = spec
        return specs

    def align(self, config, case: dict, settings: Settings) -> None:
        """The engine's own block size for a hybrid, its recurrent pages' padding, and their block size."""
        attention = next(layer for layer in case["layers"] if layer["kind"] not in RECURRENT)
        state = next(layer for layer in case["layers"] if layer["kind"] in RECURRENT)
        shapes, sizes = self.layers.state(state, case)
        model_class = types.SimpleNamespace(
            get_mamba_state_shape_from_config=lambda config: shapes,
            get_mamba_state_dtype_from_config=lambda config: tuple(DTYPES[size] for size in sizes),
        )
        models = importlib.import_module("vllm.model_executor.models")
        models.ModelRegistry = types.SimpleNamespace(resolve_model_cls=lambda *args, **kwargs: (model_class, None))
        abstract = importlib.import_module("vllm.model_executor.layers.mamba.abstract")
        abstract.get_mamba_prefill_checkpoint_alignment = self.layers.alignment
        mla = settings.mla
        cards = case["engine"].get("tensor_parallel_size", 1)
        model = config.model_config
        model.get_num_kv_heads = lambda parallel: 1 if mla else max(1, attention["num_kv_heads"] // cards)
        head = attention["kv_lora_rank"] + attention["qk_rope_head_dim"] if mla else attention["head_size"]
        model.get_head_size = lambda: head
        model.get_mamba_chunk_size = lambda: chunk(state)
        backend = self.layers.backend(case["engine"].get("kv_cache_dtype", "auto"), settings.kernel_of(attention), mla)
        platform = type("Platform", (self.interface.Platform,), {"_find_non_ssm_backends": classmethod(lambda cls, config: [backend])})
        platform._align_hybrid_block_size(config, backend)


class Settings:
    """A case's settings as the engine's configuration has them after its own checks."""

    def __init__(self, case: dict, caches_hybrids: bool) -> None:
        self.engine = engine = case["engine"]
        self.drafts = engine.get("num_speculative_tokens", 0)
        method = engine.get("speculative_method") or ("draft" if "draft" in engine else "mtp")
        self.drafted = engine.get("draft", case["mtp_layers"]) if self.drafts and method not in DRAFTLESS else []
        self.several_mtp = method == "mtp" and sum(layer["num_layers"] for layer in self.drafted) > 1
        recurrent = [layer["kind"] in RECURRENT for layer in case["layers"]]
        self.hybrid = any(recurrent) and not all(recurrent)
        self.mla = mla = any(layer["kind"] == "MLA" for layer in case["layers"])
        usual = 64 if mla and not self.hybrid else 16
        self.kernel = engine.get("kernel_block_size") or 16
        self.mla_kernel = engine.get("kernel_block_size") or usual
        if not self.hybrid:
            self.kernel, self.mla_kernel = max(self.kernel, 16), max(self.mla_kernel, usual)
        asked = engine.get("mamba_cache_mode") or "align"
        caching = engine.get("enable_prefix_caching")
        caching = (self.hybrid and caches_hybrids) if caching is None else caching  # on by default, for hybrids from 0.28
        self.mode = ("align" if asked == "none" else asked) if any(recurrent) and caching else "none"
        self.block_size = engine.get("block_size") or (16 if self.hybrid else self.mla_kernel if mla else self.kernel)
        kept = engine.get("kv_cache_dtype", "auto")
        self.cache_dtype = "auto" if kept in ("bf16", "fp16") else kept

    def kernel_of(self, layer: dict) -> int:
        """The smallest block of the backend that a layer runs on."""
        return self.mla_kernel if layer["kind"] == "MLA" else self.kernel

    def config(self, layout: object) -> types.SimpleNamespace:
        """The fields of VllmConfig that the planner and the layers read."""
        engine, limit = self.engine, self.engine["max_model_len"]
        batch = engine.get("max_num_batched_tokens", 0)
        speculative = types.SimpleNamespace(
            num_speculative_tokens=self.drafts,
            use_multi_module_mtp=lambda: self.several_mtp,
            use_eagle=lambda: False,
            use_eagle_block_drop=lambda: False,
        )
        return types.SimpleNamespace(
            layers=[],
            num_speculative_tokens=self.drafts,
            num_prefill_lookahead_tokens=self.drafts if self.several_mtp else min(self.drafts, 1),
            max_in_flight_tokens=2 * batch,  # from 0.26, two batches: async scheduling on, one stage
            model_config=types.SimpleNamespace(
                max_model_len=limit,
                original_max_model_len=limit,
                dtype=DTYPES[2],
                architecture="toy",
                supports_mamba_prefix_caching=True,
                supports_kv_cache_grouping=False,
                use_mla=self.mla,
            ),
            parallel_config=types.SimpleNamespace(
                tensor_parallel_size=engine.get("tensor_parallel_size", 1),
                decode_context_parallel_size=1,
                prefill_context_parallel_size=1,
                pipeline_parallel_size=1,
            ),
            scheduler_config=types.SimpleNamespace(
                disable_hybrid_kv_cache_manager=not engine.get("hybrid_kv_cache_manager", True),
                max_num_batched_tokens=batch,
                enable_chunked_prefill=True,
            ),
            cache_config=types.SimpleNamespace(
                cache_dtype=self.cache_dtype,
                block_size=self.block_size,
                num_gpu_blocks_override=engine.get("num_gpu_blocks_override"),
                mamba_cache_mode=self.mode,
                mamba_block_size=limit if self.mode == "none" else self.block_size,
                user_specified_mamba_block_size=False,
                mamba_page_size_padded=None,
                skip_page_size_padded=None,
                kv_cache_dtype_skip_layers=[],
                prefix_match_unit=None,
                use_kda_recoverssm=False,
                use_replayssm=False,
                prefix_cache_retention_interval=None,
                get_resolved_kv_cache_layout=lambda: layout,
            ),
            attention_config=types.SimpleNamespace(hisparse_config=None, backend=None),
            speculative_config=speculative if self.drafts else None,
            kv_transfer_config=None,
        )


def chunk(layer: dict) -> int:
    """Tokens that mode "all" aligns to (config/model.py, get_mamba_chunk_size)."""
    if layer["kind"] == "Mamba2":
        return layer.get("chunk_size", 256)
    return 64 if layer["kind"] in ("GatedDeltaNet", "KimiDelta") else 2048


def refusal(error: Exception) -> dict:
    text = str(error)
    if "KV cache is needed" not in text.replace("\n", " "):
        return {"error": "other", "text": text[:120]}
    longest = text.partition("estimated maximum model length is ")[2].partition(".")[0]
    needed = text.partition("), (")[2].partition(" ")[0]
    return {"error": "not enough", "estimated_max_model_len": int(longest or 0), "needed_gib": float(needed)}


def main() -> None:
    run = Run(Path(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(run.plan(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
