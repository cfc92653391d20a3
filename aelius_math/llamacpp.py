"""llama.cpp: what a context takes (`memory`), and what its fit pass decides (`fit`)."""

from aelius_math.llamacpp_fit import Block, Fit, fit
from aelius_math.llamacpp_memory import Cache, Context, Memory, memory

__all__ = ["Block", "Cache", "Context", "Fit", "Memory", "fit", "memory"]
