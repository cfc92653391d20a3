"""What a long conversation costs in memory, to the engine's own integers.

Import from the module that owns the rule: `aelius_math.model`, `aelius_math.vllm`, `aelius_math.llamacpp`,
`aelius_math.ladder`, `aelius_math.logs`. Nothing is imported here, so that a command starts fast.
"""

__version__ = "0.1.0"
