"""llama.cpp: what a context takes (`memory`), and what its fit pass decides (`fit`; `fit_devices` for several)."""

from aelius_math.llamacpp_case import Block
from aelius_math.llamacpp_context import Context
from aelius_math.llamacpp_devices import DevicesFit, fit_devices
from aelius_math.llamacpp_fit import Fit, fit
from aelius_math.llamacpp_memory import Cache, Memory, memory

__all__ = ["Block", "Cache", "Context", "DevicesFit", "Fit", "Memory", "fit", "fit_devices", "memory"]
