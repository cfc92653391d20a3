"""The command `fit`: what llama.cpp takes for a model and flags, and what its fit pass decides. Flags are its own."""

from __future__ import annotations

import argparse
import re
import textwrap

from aelius_math.cli import Result
from aelius_math.cli_config import add_config, load_model
from aelius_math.llamacpp_builds import BUILDS, DRAFT_MAX, FIT_TARGET_MIB
from aelius_math.llamacpp_context import CACHE_TYPES, Context
from aelius_math.llamacpp_fit import Fit, fit
from aelius_math.llamacpp_worth import Worth, flag_worth
from aelius_math.model import Model
from aelius_math.units import MIB, AeliusError, parse_tokens


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    types = f"one of {', '.join(CACHE_TYPES)}"
    context = parser.add_argument_group("the context, as llama-server takes it")
    context.add_argument("-c", "--ctx-size", metavar="N", help="tokens of context; 0: all of the model's; unset: fit chooses")
    context.add_argument(
        "-np",
        "--parallel",
        type=int,
        metavar="N",
        help="slots, which split the context; unset: 4 that share it",
    )
    kvu = context.add_mutually_exclusive_group()
    kvu.add_argument(
        "-kvu",
        "--kv-unified",
        dest="kv_unified",
        action="store_true",
        default=None,
        help="one cache for all slots",
    )
    kvu.add_argument("-no-kvu", "--no-kv-unified", dest="kv_unified", action="store_false", help="a cache for each slot")
    context.add_argument("-ub", "--ubatch-size", type=int, default=512, metavar="N", help="micro-batch (default 512)")
    context.add_argument("-b", "--batch-size", type=int, default=2048, metavar="N", help="batch (default 2048)")
    context.add_argument("-ctk", "--cache-type-k", default="f16", metavar="T", help=f"type of K: {types} (default f16)")
    context.add_argument("-ctv", "--cache-type-v", default="f16", metavar="T", help="type of V (default f16)")
    context.add_argument(
        "-ctkd",
        "--cache-type-k-draft",
        default="f16",
        metavar="T",
        help="type of the MTP cache's K (default f16)",
    )
    context.add_argument(
        "-ctvd",
        "--cache-type-v-draft",
        default="f16",
        metavar="T",
        help="type of the MTP cache's V (default f16)",
    )
    context.add_argument("--spec-type", choices=("none", "draft-mtp"), help="draft-mtp: draft with the model's MTP layer")
    context.add_argument(
        "--spec-draft-n-max",
        type=int,
        metavar="N",
        help=f"drafted tokens a step; turns MTP on (default with it {DRAFT_MAX})",
    )
    device = parser.add_argument_group("the device")
    free = device.add_mutually_exclusive_group(required=True)
    free.add_argument("--free-mib", metavar="N", help='free memory as the fit pass reads it, after "vs." in its log line')
    free.add_argument("--free-before-mib", metavar="N", help="free memory before the server starts, as nvidia-smi shows it")
    device.add_argument(
        "--weights-mib",
        required=True,
        metavar="N",
        help='weights on the device: "model buffer size" in the log',
    )
    device.add_argument("--mmproj-mib", default="0", metavar="N", help="vision weights and compute on the device (default 0)")
    device.add_argument(
        "--fit-target",
        "-fitt",
        default=str(FIT_TARGET_MIB),
        metavar="MIB",
        help=f"margin to keep (default {FIT_TARGET_MIB})",
    )
    device.add_argument("--compute-mib", metavar="N", help='both "compute buffer size" lines, where they are not measured')
    device.add_argument("-ngl", "--n-gpu-layers", metavar="N", help="layers on the device; setting it stops the fit pass")
    device.add_argument("-ot", "--override-tensor", metavar="PATTERN", help="setting it stops the fit pass")
    device.add_argument("--build", choices=tuple(BUILDS), default="oct", help="whose rules (default oct)")


_MIB = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,12}(?:\.[0-9]{1,12})?", re.ASCII)


def mib(text: str | None, flag: str) -> float | None:
    """A number of MiB, whole where it is written whole.

    >>> mib("24,576", "--free-mib"), mib("887.99", "--mmproj-mib")
    (24576, 887.99)
    """
    if text is None:
        return None
    if not _MIB.fullmatch(text):
        raise AeliusError(flag, text, "a number of MiB, such as 24576 or 887.99, of one device")
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)


def context_of(args: argparse.Namespace) -> Context:
    n_ctx = None
    if args.ctx_size is not None:
        n_ctx = 0 if args.ctx_size.strip() == "0" else parse_tokens(args.ctx_size, "-c")
    draft = args.spec_draft_n_max
    if args.spec_type == "none":
        draft = 0
    elif draft is None:
        draft = DRAFT_MAX if args.spec_type else 0
    return Context(
        n_ctx=n_ctx,
        n_seq_max=None if args.parallel == -1 else args.parallel,
        kv_unified=args.kv_unified,
        type_k=args.cache_type_k,
        type_v=args.cache_type_v,
        type_k_draft=args.cache_type_k_draft,
        type_v_draft=args.cache_type_v_draft,
        draft_max=draft,
        n_ubatch=args.ubatch_size,
        n_batch=args.batch_size,
        build=args.build,
    )


def layers_of(text: str | None) -> int | None:
    """-ngl: a number; "all" is more than any model has; "auto" and -1 leave it to the pass."""
    if text is None or text in ("auto", "-1"):
        return None
    if text == "all":
        return 1 << 20
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise AeliusError("-ngl", text, "a number of layers, all or auto")
    return int(text)


def run(args: argparse.Namespace) -> Result:
    model, context = load_model(args.config, dtype=args.dtype), context_of(args)
    given = {
        "free_mib": mib(args.free_mib, "--free-mib"),
        "free_before_mib": mib(args.free_before_mib, "--free-before-mib"),
        "weights_mib": mib(args.weights_mib, "--weights-mib"),
        "fit_target_mib": mib(args.fit_target, "--fit-target"),
        "vision_mib": mib(args.mmproj_mib, "--mmproj-mib"),
    }
    found = fit(
        model,
        context,
        **given,  # type: ignore[arg-type]
        n_gpu_layers=layers_of(args.n_gpu_layers),
        compute_mib=mib(args.compute_mib, "--compute-mib"),
        override_tensor=args.override_tensor is not None,
    )
    measured = args.compute_mib is None and found.wall_tokens is not None
    worth = flag_worth(model, context, **given) if measured else []  # type: ignore[arg-type]
    return Result(payload(model, found, worth), text(model, found, worth), 1 if found.verdict == "evict" else 0)


def shown(size: int | None) -> float | None:
    """MiB to 0.01, as the log prints them."""
    return None if size is None else round(size / MIB, 2)


def payload(model: Model, found: Fit, worth: list[Worth]) -> dict[str, object]:
    """The JSON shape. Sizes of caches and state are exact; what holds a measured constant is to 0.01 MiB."""
    memory, build = found.memory, BUILDS[found.build]
    return {
        "name": model.name,
        "build": {"name": build.name, "commit": build.commit, "date": build.date},
        "n_ctx": memory.n_ctx,
        "n_ctx_seq": memory.n_ctx_seq,
        "cells": memory.cells,
        "streams": memory.streams,
        "slots": memory.slots,
        "kv_mib": memory.kv_bytes / MIB,
        "swa_mib": memory.swa_bytes / MIB,
        "recurrent_mib": memory.recurrent_bytes / MIB,
        "draft_kv_mib": None if memory.draft_kv_bytes is None else memory.draft_kv_bytes / MIB,
        "compute_mib": shown(found.compute_bytes),
        "compute_growing_mib": memory.compute_growing_bytes / MIB,
        "weights_mib": shown(found.weights_bytes),
        "projected_mib": shown(found.projected_bytes),
        "known_mib": shown(found.known_bytes),
        "free_mib": shown(found.free_bytes),
        "margin_mib": shown(found.margin_bytes),
        "leave_mib": shown(found.leave_bytes),
        "verdict": found.verdict,
        "action": found.action,
        "deficit_mib": shown(found.deficit_bytes),
        "counted_twice_mib": found.counted_twice_bytes / MIB,
        "layers_kept": found.layers_kept,
        "layers_total": found.layers_total,
        "fused_ops": found.fused_ops,
        "n_ctx_after": found.n_ctx,
        "wall_tokens": found.wall_tokens,
        "worth": [
            {
                "flag": each.flag,
                "wall_tokens": each.wall_tokens,
                "gain_tokens": each.gain_tokens,
                "saved_mib": shown(each.saved_bytes),
            }
            for each in worth
        ],
        "notes": notes(found),
    }


def notes(found: Fit) -> list[str]:
    """What a reader of the numbers should know of them."""
    memory, build = found.memory, BUILDS[found.build]
    said = [f"Rules of llama.cpp {build.commit} ({build.date}), CUDA."]
    if found.compute_bytes is None:
        said.append(
            "The compute buffer's constant part is measured for Qwen3.5, 3.6 and 3.8 27B at -ub 256 and 512 with one or "
            "two streams. Here it is not known: give --compute-mib from your log."
        )
    elif memory.compute_bytes is not None:
        said.append("The compute buffer's constant part is measured, not derived.")
    if found.counted_twice_bytes:
        said.append(
            f"The pass counts {memory.recurrent_bytes / MIB:,.2f} MiB of recurrent state twice: it is allocated while "
            "free memory is read, and projected again."
        )
    elif memory.recurrent_bytes and build.state_counted_twice:
        said.append(
            f"The free memory given is taken as the pass reads it, already short by {memory.recurrent_bytes / MIB:,.2f} "
            "MiB of recurrent state; --free-before-mib takes what nvidia-smi shows."
        )
    if build.draft_in_margin and memory.draft_kv_bytes:
        said.append("This build adds the MTP context to the margin, not to what is projected.")
    return said


def text(model: Model, found: Fit, worth: list[Worth]) -> str:
    """The same for people: what is taken, the decision, the wall, the flags."""
    memory = found.memory

    def line(name: str, size: int | None, more: str = "") -> str:
        return f"  {name:<26}" + ("      not known" if size is None else f"{size / MIB:>11,.2f} MiB") + more

    slots = f"{memory.slots} slot" + ("s" if memory.slots > 1 else "")
    if memory.slots > 1:
        slots += f" of {memory.n_ctx_seq:,}" if memory.streams > 1 else " over one cache"
    lines = [f"{model.name}, {memory.n_ctx:,} tokens of context, {slots}", ""]
    lines.append(line("weights", found.weights_bytes))
    lines.append(line("KV cache", memory.kv_bytes))
    if memory.swa_bytes:
        lines.append(line("sliding-window cache", memory.swa_bytes, f"  {memory.swa_cells:,} cells a stream"))
    if memory.recurrent_bytes:
        lines.append(line("recurrent state", memory.recurrent_bytes, f"  {memory.recurrent_rows} rows"))
    if memory.draft_kv_bytes:
        lines.append(line("MTP cache", memory.draft_kv_bytes))
    lines.append(
        line(
            "compute buffers",
            memory.compute_bytes,
            f"  {memory.compute_growing_bytes / MIB:,.2f} of it grows",
        )
    )
    lines += [
        "",
        line("projected", found.projected_bytes),
        line("free", found.free_bytes),
        line("margin", found.margin_bytes),
    ]
    if found.deficit_bytes:
        lines.append(line("lacking", found.deficit_bytes))
    elif found.leave_bytes is None and found.verdict == "evict":
        lines.append(line("lacking at least", found.known_bytes + found.margin_bytes - found.free_bytes))
    elif found.leave_bytes is not None:
        lines.append(line("would be left", found.leave_bytes))
    lines += [
        "",
        "  " + (found.action if found.verdict == "context reduced" else f"{found.verdict}: {found.action}"),
    ]
    if found.fused_ops is False:
        lines.append("  and the fused Gated DeltaNet kernel goes off for every layer")
    if found.wall_tokens is not None:
        lines.append(f"  the wall: {found.wall_tokens:,} tokens ({found.wall_tokens / 1024:,.1f}K)")
    if worth:
        lines += ["", "  what a flag would move the wall by, in tokens"]
        lines += [f"    {each.flag:<28} {each.gain_tokens:>+9,}  to {each.wall_tokens:>9,}" for each in worth]
    for note in notes(found):
        lines += ["", *textwrap.wrap(note, 100, initial_indent="  ", subsequent_indent="  ")]
    return "\n".join(lines)
