"""The same rig as a command line and as Python: run, they print the numbers of the page."""

from __future__ import annotations

import shlex
from typing import Any

from aelius_math.ladder import Ladder
from aelius_math.llamacpp import Context
from aelius_math.model import Model
from aelius_math.rig_form import Form
from aelius_math.vllm import Engine

FILE = "config.json"
RUN = ("python", "-m", "aelius_math")
"""The command as it runs in a copy of the project, with Python alone."""
REFUSED = (
    '    raise SystemExit(f"refused: needs {refused.needed_bytes:,} bytes; '
    'at most {refused.longest_max_model_len:,} tokens in one request")'
)


def config_words(form: Form) -> list[str]:
    """CONFIG as the command line takes it: a file for what was pasted."""
    words = [FILE if form.text("config") else form.text("model")]
    return words + (["--dtype", form.text("dtype")] if form.text("dtype") else [])


def model_python(form: Form, model: Model) -> list[str]:
    dtype = form.text("dtype")
    if form.text("config"):
        more = f", dtype={dtype!r}" if dtype else ""
        return ["import json", "", "from aelius_math.model import from_config", "", f"model = from_config(json.load(open({FILE!r})){more})"]
    lines = ["from aelius_math import catalogue", "", f"model = catalogue.load({form.text('model')!r})"]
    return ["from dataclasses import replace", "", *lines, f"model = replace(model, dtype={dtype!r})"] if dtype else lines


def engine_given(engine: Engine) -> dict[str, Any]:
    """The fields of Engine that were set."""
    fields = Engine.__dataclass_fields__
    return {name: value for name in fields if (value := getattr(engine, name)) != fields[name].default}


def engine_words(engine: Engine) -> list[str]:
    words: list[str] = []
    for name, value in {"version": engine.version, **engine_given(engine)}.items():
        flag = "--vllm-version" if name == "version" else "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            words += [flag, str(value)]
    return words


def pool_command(form: Form, engine: Engine, available: list[int]) -> str:
    """`aelius-math pool ...`"""
    sizes = ",".join(map(str, available))
    return shlex.join([*RUN, "pool", *config_words(form), "--available", sizes, *engine_words(engine)])


def ladder_command(form: Form, engine: Engine, available: list[int], ladder: Ladder) -> str:
    """`aelius-math ladder ...`, in the ladder's own budget."""
    words = [*RUN, "ladder", *config_words(form), "--available", ",".join(map(str, available)), *engine_words(engine)]
    words += ["--slices", ",".join(map(str, ladder.slices)) or "none", "--budget", ladder.budget]
    words += ["--short-tokens", str(ladder.short_tokens)] if ladder.short_tokens else ["--shorts", "0"]
    return shlex.join(words + (["--reserve", form.text("reserve")] if form.text("reserve") else []))


def pool_python(form: Form, model: Model, engine: Engine, available: list[int], ladder: Ladder | None) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in {"version": engine.version, **engine_given(engine)}.items())
    size = str(available[0]) if len(available) == 1 else str(available)
    code = [
        *model_python(form, model), f"engine = Engine({given})", "try:", f"    pool = plan_pool(model, engine, {size})",
        "except DoesNotFit as refused:", REFUSED,
        'print(f"{pool.tokens:,} tokens in {pool.num_blocks:,} blocks; one full request takes {pool.blocks_per_request:,}")',
    ]  # fmt: skip
    imports = ["from aelius_math.vllm import DoesNotFit, Engine, plan_pool"]
    if ladder is not None:
        imports.insert(0, "from aelius_math.ladder import Ladder")
        shorts = f"short_tokens={ladder.short_tokens}" if ladder.short_tokens else "shorts=0"
        reserve = f", reserve={form.text('reserve')!r}" if form.text("reserve") else ""
        code += [
            'for budget in ("tokens", "blocks"):',
            f"    ladder = Ladder(pool=pool, slices={ladder.slices!r}, {shorts}{reserve}, budget=budget)",
            '    print(f"ladder in {budget}: {ladder.seats:,} seats, {ladder.shorts:,} of them short, {ladder.left:,} left")',
        ]  # fmt: skip
    return assemble(code, imports)


def assemble(code: list[str], imports: list[str]) -> str:
    """Imports first, in order, then the rest."""
    found = [line for line in code if line.startswith(("import ", "from "))]
    plain = sorted(line for line in found if line.startswith("import ") or "dataclasses" in line)
    ours = sorted({*imports, *(line for line in found if line not in plain)})
    rest = [line for line in code if line and line not in found]
    return "\n".join([*plain, *([""] if plain else []), *ours, "", *rest]) + "\n"


FIT_FLAGS = {
    "n_ctx": "-c", "n_seq_max": "-np", "n_ubatch": "-ub", "type_k": "-ctk", "type_v": "-ctv", "type_k_draft": "-ctkd",
    "type_v_draft": "-ctvd", "draft_max": "--spec-draft-n-max", "build": "--build",
}  # fmt: skip
MEMORY_FLAGS = {
    "free_mib": "--free-mib", "free_before_mib": "--free-before-mib", "weights_mib": "--weights-mib", "vision_mib": "--mmproj-mib",
    "fit_target_mib": "--fit-target", "compute_mib": "--compute-mib",
}  # fmt: skip


def context_given(context: Context) -> dict[str, Any]:
    """The fields of Context that were set."""
    fields = Context.__dataclass_fields__
    given = {name: value for name in fields if (value := getattr(context, name)) != fields[name].default}
    return {"n_ctx": context.n_ctx, **given}


def fit_command(form: Form, context: Context, memory: dict[str, Any]) -> str:
    """`aelius-math fit ...`"""
    words = [*RUN, "fit", *config_words(form)]
    for name, flag in FIT_FLAGS.items():
        value = getattr(context, name)
        if name == "draft_max" and not value:
            continue
        if value is not None:
            words += [flag, str(value)]
    if context.kv_unified is not None:
        words.append("-kvu" if context.kv_unified else "-no-kvu")
    for name, flag in MEMORY_FLAGS.items():
        if memory.get(name) is not None:
            words += [flag, str(memory[name])]
    return shlex.join(words)


def fit_python(form: Form, model: Model, context: Context, memory: dict[str, Any]) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in context_given(context).items())
    sizes = ", ".join(f"{name}={value!r}" for name, value in memory.items() if value is not None)
    code = [*model_python(form, model), f"context = Context({given})", f"found = fit(model, context, {sizes})"]
    code.append('print(f"{found.verdict}: {found.action}; the wall: {found.wall_tokens} tokens")')
    return assemble(code, ["from aelius_math.llamacpp import Context, fit"])
