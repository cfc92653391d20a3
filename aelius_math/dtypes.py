"""How many bytes a vector of numbers takes in each format that the engines keep a cache in.

Three families: plain elements; vLLM's formats with a scale for each token and head (vllm/v1/kv_cache_interface.py,
0.28.0); and llama.cpp's block-quantised rows (ggml/src/ggml-common.h): 32 values and their scale in one block.
"""

from __future__ import annotations

from aelius_math.units import AeliusError, ceil_div

ELEMENT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}

ALIASES = {
    "float32": "fp32", "float": "fp32", "f32": "fp32", "torch.float32": "fp32",
    "bfloat16": "bf16", "torch.bfloat16": "bf16",
    "float16": "fp16", "half": "fp16", "f16": "fp16", "torch.float16": "fp16",
    "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "float8_e4m3fn": "fp8",
}  # fmt: skip
"""Other spellings, as config.json, vLLM and llama.cpp write them."""

BLOCK_VALUES = 32
BLOCK_BYTES = {"q8_0": 34, "q5_1": 24, "q5_0": 22, "q4_1": 20, "q4_0": 18, "iq4_nl": 18}
"""llama.cpp: bytes of one block of 32 values."""

SCALED_HEAD_BITS = {"int8_per_token_head": 8, "fp8_per_token_head": 8, "int4_per_token_head": 4}
"""vLLM: bits of an element; one fp32 scale follows each token's K, and each token's V, of each head."""


def known(dtype: object, field: str = "dtype") -> str:
    """The one name of a format, whatever its spelling; refuses what no engine here keeps.

    >>> known("bfloat16"), known("f16"), known("fp8_e4m3")
    ('bf16', 'fp16', 'fp8')
    """
    name = ALIASES.get(dtype, dtype) if isinstance(dtype, str) else None
    if name in ELEMENT_BYTES or name in BLOCK_BYTES or name in SCALED_HEAD_BITS or name in ("nvfp4", "fp8_ds_mla"):
        return name
    names = [*ELEMENT_BYTES, *SCALED_HEAD_BITS, "nvfp4", "fp8_ds_mla", *BLOCK_BYTES]
    raise AeliusError(field, dtype, "one of " + ", ".join(names))


def element_bytes(dtype: object, field: str = "dtype") -> int:
    """Bytes [int] of one element of a plain format.

    >>> element_bytes("bfloat16"), element_bytes("fp8"), element_bytes("float32")
    (2, 1, 4)
    """
    name = ALIASES.get(dtype, dtype) if isinstance(dtype, str) else None
    if name not in ELEMENT_BYTES:
        raise AeliusError(field, dtype, "a plain format: " + ", ".join(ELEMENT_BYTES))
    return ELEMENT_BYTES[name]


def row_bytes(dtype: object, values: int, field: str = "dtype") -> int:
    """Bytes [int] of one row of `values` numbers, block-quantised or plain; quantised rows are whole blocks of 32.

    >>> row_bytes("q8_0", 1024), row_bytes("f16", 1024)
    (1088, 2048)
    """
    name = known(dtype, field)
    if name in BLOCK_BYTES:
        if values % BLOCK_VALUES:
            raise AeliusError("row", values, f"a multiple of {BLOCK_VALUES} values for {name}")
        return values // BLOCK_VALUES * BLOCK_BYTES[name]
    return values * element_bytes(name, field)


def vector_bytes(dtype: object, num_heads: int, head_size: int, field: str = "dtype") -> int:
    """Bytes [int] of one token's K, or its V, in one layer: [num_heads, head_size] elements and their scales.

    >>> vector_bytes("bf16", 4, 256), vector_bytes("fp8", 4, 256), vector_bytes("int8_per_token_head", 4, 256)
    (2048, 1024, 1040)
    """
    name = known(dtype, field)
    if name in SCALED_HEAD_BITS:
        return num_heads * (ceil_div(head_size * SCALED_HEAD_BITS[name], 8) + 4)
    if name == "nvfp4":  # two to a byte, and an fp8 scale for every 16
        return num_heads * (head_size // 2 + head_size // 16)
    if name == "fp8_ds_mla":
        raise AeliusError(field, dtype, "a format for K and V; fp8_ds_mla is for MLA layers only")
    return row_bytes(name, num_heads * head_size, field)
