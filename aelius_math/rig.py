"""Your rig: everything that the page of that name draws, from the settings that were typed; and a log, explained.

    work_out(settings)              a dict of texts, numbers, tables, pictures, derivation, code
    explain_log(text, config)       the same for a boot log

Settings are texts by name, as a form has them; what is not known is asked for (`asks`), what is taken for something left
open is said (`taken`), and what is wrong is named (`problems`). Nothing is raised for anything typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aelius_math.model import Model
from aelius_math.rig_form import Form, Missing, Show, asked, cards, model_of, said
from aelius_math.rig_llamacpp_page import of_llama
from aelius_math.rig_log import explain_log
from aelius_math.rig_sections import markdown
from aelius_math.rig_vllm_page import of_vllm
from aelius_math.units import AeliusError
from aelius_math.vllm import DoesNotFit

__all__ = ["cards", "explain_log", "work_out"]


def work_out(settings: Mapping[str, Any], rest: bool = True) -> dict[str, Any]:
    """All that a rig's settings give: `headline`, `sections`, `pictures`, `numbers`, `code`, `markdown`, and what is
    missing (`asks`), taken (`taken`) and wrong (`problems`).

    `rest` False leaves out what costs more than a plan: the choices. Sizes are bytes unless a name says MiB.

    >>> found = work_out({"model": "qwen3.8-27b", "available": "5.24 GiB", "tensor_parallel_size": "2", "kv_cache_dtype": "fp8",
    ...                   "num_speculative_tokens": "4"})
    >>> found["numbers"]["pool"]["tokens"], found["asks"], found["problems"]
    (289661, [], [])
    """
    out: dict[str, Any] = {
        "schema": 1, "asks": [], "taken": [], "problems": [], "headline": [], "short": "", "sections": [], "pictures": [], "numbers": {}, "code": {},
        "settings": dict(settings) if isinstance(settings, Mapping) else {}, "title": "Your rig", "markdown": "",
        "offered": [],
    }  # fmt: skip
    try:
        form = Form(settings)
    except AeliusError as error:
        out["problems"].append(said(error))
        return out
    out["taken"] = form.taken
    show = Show(form.k, form.unit)
    try:
        model = model_of(form)
        out["title"] = model.name
        out["numbers"]["model"] = model_numbers(model)
        work = of_llama if form.text("engine") == "llama.cpp" else of_vllm
        work(form, show, model, out, rest)
    except Missing as error:
        out["asks"].append(asked(error))
    except DoesNotFit as error:
        out["problems"].append(said(error, form))
    except AeliusError as error:
        out["asks" if error.value is None else "problems"].append(asked(error) if error.value is None else said(error, form))
    out["markdown"] = markdown(out["title"], out["headline"], out["sections"], out["code"])
    return out


def model_numbers(model: Model) -> dict[str, Any]:
    """The model's own figures, as the command `model` prints them: 16-bit, one card."""
    return {
        "name": model.name, "kv_bytes_per_token": model.kv_bytes_per_token(), "index_bytes_per_token": model.index_bytes_per_token(),
        "window_bytes": model.window_bytes(), "conv_elements": model.conv_elements, "state_elements": model.state_elements,
        "mtp_bytes_per_token": model.mtp_bytes_per_token(), "dtype": model.dtype, "max_position_embeddings": model.max_position_embeddings,
    }  # fmt: skip
