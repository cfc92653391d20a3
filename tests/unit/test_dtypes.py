"""Formats by hand: bytes of elements, of block-quantised rows, of heads with a scale; and what is refused."""

from __future__ import annotations

import pytest

from aelius_math.dtypes import ALIASES, element_bytes, known, row_bytes, vector_bytes
from aelius_math.units import AeliusError


@pytest.mark.parametrize(("dtype", "size"), [("fp32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1)])
def test_a_plain_element_has_its_size_under_every_spelling(dtype: str, size: int) -> None:
    assert element_bytes(dtype) == size
    assert all(element_bytes(alias) == size for alias, name in ALIASES.items() if name == dtype)
    assert row_bytes(dtype, 1000) == 1000 * size and vector_bytes(dtype, 4, 250) == 1000 * size


@pytest.mark.parametrize(
    ("dtype", "block"),
    # ggml-common.h: a scale of 2 bytes, a second one in q4_1 and q5_1, 4 bytes of fifth bits in q5, then 32 values
    [
        ("q8_0", 2 + 32), ("q5_1", 2 + 2 + 4 + 16), ("q5_0", 2 + 4 + 16), ("q4_1", 2 + 2 + 16), ("q4_0", 2 + 16), ("iq4_nl", 2 + 16),
    ],
)  # fmt: skip
def test_a_quantised_row_is_whole_blocks_of_32_values_with_their_scale(dtype: str, block: int) -> None:
    assert row_bytes(dtype, 32) == block and row_bytes(dtype, 1024) == 32 * block
    assert vector_bytes(dtype, 4, 256) == 32 * block
    with pytest.raises(AeliusError, match=f"^row: got 33, expected a multiple of 32 values for {dtype}"):
        row_bytes(dtype, 33)


@pytest.mark.parametrize(
    ("dtype", "head"),
    [("int8_per_token_head", 256 + 4), ("fp8_per_token_head", 256 + 4), ("int4_per_token_head", 128 + 4), ("nvfp4", 128 + 16)],
)
def test_a_scaled_head_carries_its_scale(dtype: str, head: int) -> None:
    assert vector_bytes(dtype, 1, 256) == head and vector_bytes(dtype, 4, 256) == 4 * head


def test_half_a_byte_is_rounded_up_for_each_head() -> None:
    assert vector_bytes("int4_per_token_head", 2, 5) == 2 * (3 + 4)


@pytest.mark.parametrize("dtype", ["", "fp7", "FP8", "auto", "q9_0", None, 8, ["fp8"]])
def test_an_unknown_format_is_refused_by_its_field(dtype: object) -> None:
    for read in (lambda: known(dtype, "kv_cache_dtype"), lambda: element_bytes(dtype, "kv_cache_dtype")):
        with pytest.raises(AeliusError, match="^kv_cache_dtype: got "):
            read()


def test_a_format_for_mla_is_refused_for_k_and_v() -> None:
    with pytest.raises(AeliusError, match="for MLA layers only"):
        vector_bytes("fp8_ds_mla", 4, 256)
    for dtype in ("q8_0", "int8_per_token_head", "nvfp4", "fp8_ds_mla"):
        with pytest.raises(AeliusError, match="a plain format"):
            element_bytes(dtype)
