"""A read log in plain sentences; every number in them is one of the JSON's."""

from __future__ import annotations

from typing import Any


def text(found: dict[str, Any]) -> str:
    """The whole log, boot by boot, as `aelius-math log` prints it."""
    parts = []
    for index, boot in enumerate(found["boots"], 1):
        head = f"Boot {index} of {len(found['boots'])}: " if len(found["boots"]) > 1 else ""
        name = boot["model"] or "a model that the log does not name"
        version = f" {boot['version']}" if boot["version"] else ""
        parts.append(f"{head}{boot['engine']}{version}, {name}: {boot['status']}.")
        parts += [f"  {sentence}" for sentence in boot["sentences"]]
        parts += [f"  Note: {note}" for note in boot["notes"]]
    return "\n".join(parts)


def sentences(boot: dict[str, Any]) -> list[str]:
    """What you have, what it costs, what binds you, what is missing."""
    return _vllm(boot) if boot["engine"] == "vllm" else _llama(boot)


def plural(count: int, thing: str) -> str:
    """A count and its noun.

    >>> plural(1, "block"), plural(1616, "token")
    ('1 block', '1,616 tokens')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _vllm(boot: dict[str, Any]) -> list[str]:
    derived, out = boot["derived"], []
    length = boot["max_model_len"]
    if boot["status"] == "refused":
        out.append(_refusal(boot))
    if boot["tokens"] is not None:
        at = f", counted for requests of {length:,} tokens" if length else ""
        out.append(f"You have a pool of {boot['tokens']:,} tokens{at}.")
    if boot["max_concurrency"] is not None:
        out.append(f"{boot['max_concurrency']:g} requests of the full {length:,} tokens fit at once.")
    if derived["num_blocks"] is not None:
        out.append(
            f"That is {plural(derived['num_blocks'], 'block')}, of which {derived['usable_blocks']:,} can be used; a full request takes"
            f" {derived['blocks_per_request']:,}."
        )
    elif derived["ambiguous"]:
        out.append(
            f"{derived['candidates_total']:,} pairs of blocks and blocks per request print these figures: the log does not settle it."
        )
    if derived["fixed_blocks_per_request"]:
        fixed = derived["fixed_blocks_per_request"]
        out.append(
            f"Every live conversation holds {plural(fixed, 'block')} of recurrent state however short it is: the room of"
            f" {derived['fixed_tokens']:,} tokens."
        )
    if derived["most_conversations"] is not None:
        out.append(
            f"At most {plural(derived['most_conversations'], 'conversation')} can be live at once; what binds is {derived['binds']}."
        )
    missing = [name for name in boot["missing"]]
    if missing:
        out.append(f"The log does not say: {', '.join(missing)}.")
    return out


def _refusal(boot: dict[str, Any]) -> str:
    parts = []
    if boot["needed_gib"] is not None:
        parts.append(
            f"One request of {boot['max_model_len']:,} tokens needs {boot['needed_gib']:g} GiB of KV cache and {boot['available_kv_gib']:g} GiB are there"
        )
    elif boot["max_model_len"] is not None and boot["longest_max_model_len"] is not None:
        parts.append(f"One request of {boot['max_model_len']:,} tokens does not fit the pool")
    else:
        parts.append("Nothing was left for the KV cache")
    if boot["longest_max_model_len"] is not None:
        parts.append(f"the longest that fits is {boot['longest_max_model_len']:,}")
    return "; ".join(parts) + "."


def _llama(boot: dict[str, Any]) -> list[str]:
    derived, out = boot["derived"], []
    if boot["kv_mib"] is not None:
        cells = f" for {boot['cells']:,} cells" if boot["cells"] else ""
        types = f", K {boot['type_k']} and V {boot['type_v']}" if boot.get("type_k") else ""
        out.append(f"The KV cache takes {boot['kv_mib']:,.2f} MiB{cells}{types}.")
    if derived["kv_bytes_per_token"] is not None:
        out.append(f"A token costs {derived['kv_bytes_per_token']:,} bytes of it.")
    if boot["recurrent_mib"] is not None:
        each = derived["state_mib_per_conversation"]
        out.append(
            f"Recurrent state takes {boot['recurrent_mib']:,.2f} MiB"
            + (f", {each:g} MiB a conversation however short." if each else ".")
        )
    if boot["compute_mib"] is not None:
        out.append(f"The compute buffer takes {boot['compute_mib']:,.2f} MiB.")
    if boot["draft_kv_mib"] is not None:
        out.append(f"The drafter's cache takes {boot['draft_kv_mib']:,.2f} MiB.")
    if derived["longest_request"] is not None:
        out.append(f"The longest request is {derived['longest_request']:,} tokens.")
    if derived["most_conversations"] is not None:
        out.append(f"{plural(derived['most_conversations'], 'conversation')} at once: the slots bind.")
    if boot["projected_mib"] is not None:
        out.append(_fit(boot))
    if boot["missing"]:
        out.append(f"The log does not say: {', '.join(boot['missing'])}.")
    return out


def _fit(boot: dict[str, Any]) -> str:
    text = f"The fit pass projected {boot['projected_mib']:,} MiB against {boot['free_mib']:,} MiB free"
    if boot["leave_mib"] is not None:
        text += f": {boot['leave_mib']:,} MiB stay free where {boot['margin_mib']:,} were wanted"
    elif boot["deficit_mib"] is not None:
        text += f": {boot['deficit_mib']:,} MiB too many"
    return f"{text}; verdict: {boot['verdict'] or 'not in the log'}."
