"""What stands in for torch and for the rest of vLLM while a release's own planner runs: element sizes, and empty objects."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

REAL = (
    "vllm.v1.core.kv_cache_utils",
    "vllm.v1.core.kv_cache_planning",
    "vllm.v1.core.kv_cache_config_builder",
    "vllm.v1.kv_cache_interface",
    "vllm.v1.kv_cache_spec_registry",
    "vllm.v1.kv_cache_layout",
    "vllm.utils.math_utils",
    "vllm.platforms.interface",
    "vllm.model_executor.models.config",
    "vllm.model_executor.layers.mamba.mamba_utils",
)
"""The engine's own files that run; a release that lacks one does without."""

STUBBED = ("vllm", "torch", "cbor2", "regex", "psutil", "prometheus_client", "xxhash")


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
ONE_BYTE = ("fp8", "fp8_e4m3", "int8_per_token_head", "fp8_per_token_head", "int4_per_token_head", "nvfp4", "fp8_ds_mla")
DTYPE_OF = {"float32": DTYPES[4], "float16": DTYPES[2], "bfloat16": DTYPES[2]} | dict.fromkeys(ONE_BYTE, DTYPES[1])


class Platform:
    """No particular card: every question about it is answered with no."""

    def get_kv_cache_config_builder_cls(self, config: object) -> str:
        return "vllm.v1.core.kv_cache_planning.DefaultKVCacheConfigBuilder"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: False


class MultipleOf:
    """A backend's block sizes: whole multiples of `base` (vllm/v1/attention/backend.py)."""

    def __init__(self, base: int) -> None:
        self.base = base

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MultipleOf) and other.base == self.base

    def __hash__(self) -> int:
        return self.base


def divide(numerator: int, denominator: int) -> int:
    assert numerator % denominator == 0, f"{numerator} is not divisible by {denominator}"
    return numerator // denominator


def by_name(qualified: str) -> object:
    module, _, name = qualified.rpartition(".")
    return getattr(sys.modules[module], name)


def nvfp4_row(head: int) -> int:
    return head // 2 + head // 16


GIVEN = {
    "vllm.utils.torch_utils": {
        "get_dtype_size": lambda dtype: dtype.itemsize,
        "nvfp4_kv_cache_full_dim": nvfp4_row,
        "STR_DTYPE_TO_TORCH_DTYPE": DTYPE_OF,
    },
    "vllm.utils.import_utils": {"resolve_obj_by_qualname": by_name},
    "vllm.utils.mem_utils": {"format_gib": lambda size: f"{size / 2**30:.2f}"},
    "vllm.v1.attention.backend": {"MultipleOf": MultipleOf},
    "vllm.platforms": {"current_platform": Platform()},
    "vllm.distributed": {"divide": divide},
    "torch": {
        "float32": DTYPES[4],
        "float16": DTYPES[2],
        "bfloat16": DTYPES[2],
        "uint8": DTYPES[1],
        "dtype": DType,
    },
    "vllm.v1.hisparse.layout": {"get_hisparse_kv_cache_groups": lambda config, specs: None},
    "vllm.config.cache": {"get_kv_cache_dtype_handler": lambda name: None},
}
"""What the engine's files take from modules that do not run."""


class Stub(types.ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the real files of REAL from `root`; any other module of vllm or torch is an empty object."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in STUBBED:
            return None
        file = self.root / (name.replace(".", "/") + ".py")
        if name in REAL and file.exists():
            return importlib.machinery.ModuleSpec(name, importlib.machinery.SourceFileLoader(name, str(file)))
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = Stub(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        for name, value in GIVEN.get(module.__name__, {}).items():
            setattr(module, name, value)
