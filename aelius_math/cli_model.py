"""`aelius-math model CONFIG`: what a model keeps for a conversation, in bytes, at 16 bits and on one card."""

from __future__ import annotations

import argparse

from aelius_math.cache import Layers
from aelius_math.cli import Result
from aelius_math.cli_config import add_config, load_model
from aelius_math.model import Model
from aelius_math.units import show_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)


def run(args: argparse.Namespace) -> Result:
    model = load_model(args.config, dtype=args.dtype)
    return Result(payload(model), text(model))


def payload(model: Model) -> dict[str, object]:
    """The JSON shape: the contract's figures, and the layers they come from."""
    return {
        "name": model.name,
        "kv_bytes_per_token": model.kv_bytes_per_token(),
        "index_bytes_per_token": model.index_bytes_per_token(),
        "window_bytes": model.window_bytes(),
        "conv_elements": model.conv_elements,
        "state_elements": model.state_elements,
        "mtp_bytes_per_token": model.mtp_bytes_per_token(),
        "dtype": model.dtype,
        "kv_cache_dtype": model.kv_cache_dtype,
        "max_position_embeddings": model.max_position_embeddings,
        "layers": [describe(layers) for layers in model.layers],
        "mtp_layers": [describe(layers) for layers in model.mtp_layers],
    }


def describe(layers: Layers) -> dict[str, object]:
    """One kind of layer, with its fields; those that are not set are left out."""
    given = {name: getattr(layers, name) for name in layers._fields}
    return {
        "kind": type(layers).__name__,
        **{name: value for name, value in given.items() if value is not None},
    }


def text(model: Model) -> str:
    """The same for people: a line a kind of layer, then what it adds up to."""
    lines = [f"{model.name}, 16-bit cache, one card", ""]
    for layers in model.layers:
        lines.append(f"  {layers.num_layers:>4} {type(layers).__name__:<22} {each(layers)}")
    for layers in model.mtp_layers:
        lines.append(f"  {layers.num_layers:>4} {type(layers).__name__:<22} {each(layers)}, only with MTP")
    lines.append("")
    index = model.index_bytes_per_token()
    lines.append(f"  each token    {model.kv_bytes_per_token():>15,} bytes" + (f" + {index:,} of index keys" if index else ""))
    if model.window_bytes():
        lines.append(f"  full windows  {model.window_bytes():>15,} bytes ({show_bytes(model.window_bytes())})")
    if model.conv_elements or model.state_elements:
        lines.append(f"  fixed state   {model.state_elements:>15,} elements a conversation + {model.conv_elements:,} of convolution")
    if model.mtp_bytes_per_token():
        lines.append(f"  MTP adds      {model.mtp_bytes_per_token():>15,} bytes a token, when it is on")
    lines.append(f"  dtype         {model.dtype or 'not stated by the config'}")
    if model.kv_cache_dtype:
        lines.append(f"  cache dtype   {model.kv_cache_dtype}, stated by the checkpoint")
    return "\n".join(lines)


def each(layers: Layers) -> str:
    """What one layer keeps."""
    if layers.recurrent:
        return f"{layers.state_elements():,} + {layers.conv_elements():,} elements each, whatever the length"
    size = f"{layers.token_bytes('bf16'):,} bytes a token each"
    if layers.index_token_bytes("bf16"):
        size += f" + {layers.index_token_bytes('bf16'):,} of index keys"
    return size if layers.window is None else f"{size}, up to {layers.window:,} tokens"
