"""A read log in plain sentences: what you have, what it costs, what binds you, what would change it most.

Every number in a sentence is one of the JSON's, printed with commas, or with the digits that the log gives.
"""

from __future__ import annotations

from typing import Any


def text(found: dict[str, Any]) -> str:
    """The whole log, boot by boot, as `aelius-math log` prints it."""
    parts = []
    for index, boot in enumerate(found["boots"], 1):
        head = f"Boot {index} of {len(found['boots'])}: " if len(found["boots"]) > 1 else ""
        name = f", {boot['model']}" if boot["model"] else ""
        version = f" {boot['version']}" if boot["version"] else ""
        parts.append(f"{head}{boot['engine']}{version}{name}: {STATUS[boot['status']]}")
        parts += [f"  {sentence}" for sentence in boot["sentences"]]
        parts += [f"  Note: {note}" for note in boot["notes"]]
    listed = {note for boot in found["boots"] for note in boot["notes"]}
    parts += [note for note in found["notes"] if note not in listed and not note.startswith("Boot ")]
    return "\n".join(parts)


STATUS = {
    "started": "it started.",
    "refused": "it refused to start.",
    "unknown": "the log does not say whether it started.",
}


def sentences(boot: dict[str, Any]) -> list[str]:
    """The sentences of a boot."""
    return _vllm(boot) if boot["engine"] == "vllm" else _llama(boot)


def plural(count: int, thing: str) -> str:
    """A count and its noun.

    >>> plural(1, "block"), plural(1616, "token")
    ('1 block', '1,616 tokens')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _vllm(boot: dict[str, Any]) -> list[str]:
    derived, length, out = boot["derived"], boot["max_model_len"], []
    if boot["status"] == "refused":
        out.append(_refusal(boot))
    if boot["tokens"] is not None:
        at = f", as the engine counts for requests of {length:,}" if length else ""
        out.append(f"You have a pool of {boot['tokens']:,} tokens{at}.")
    if boot["max_concurrency"] is not None:
        out.append(f"That is {boot['max_concurrency']:.2f} times one request of {length:,} tokens.")
    if derived["num_blocks"] is not None:
        usable, each = derived["usable_blocks"], derived["blocks_per_request"]
        size = f" of {derived['block_size']:,} tokens" if derived["block_size"] else ""
        counted = f", of which {usable:,} can be used" if usable is not None else ""
        takes = f"; a request of the full length takes {each:,}" if each is not None else ""
        out.append(f"In blocks{size} it is {derived['num_blocks']:,}{counted}{takes}.")
    elif derived["ambiguous"]:
        out.append(
            f"{derived['candidates_total']:,} pairs of blocks and blocks per request print these figures; the log does not settle which."
        )
    if derived["fixed_blocks_per_request"]:
        room = f": the room of {derived['fixed_tokens']:,} tokens" if derived["fixed_tokens"] else ""
        fixed = plural(derived["fixed_blocks_per_request"], "block")
        out.append(f"Every live conversation, however short, holds {fixed} of recurrent state{room}.")
    if derived["most_conversations"] is not None:
        live = plural(derived["most_conversations"], "conversation")
        out.append(f"At most {live}, the shortest there are, can be live at once; what binds is {derived['binds']}.")
    out += [_worth(one, length) for one in derived["flags"]]
    return [*out, *_missing(boot)]


def _worth(one: dict[str, Any], length: int) -> str:
    flag, gain = one["flag"], one["gain_tokens"]
    if one["tokens"] is not None:
        word = "more" if gain >= 0 else "fewer"
        return f"With {flag} the same memory is {one['tokens']:,} tokens, {abs(gain):,} {word}."
    longest = one["longest_max_model_len"]
    if longest is not None and longest >= length:
        return f"With {flag} the same memory holds the full {length:,} tokens."
    return f"With {flag} the longest request that the same memory holds is {longest:,} tokens."


def _refusal(boot: dict[str, Any]) -> str:
    length, longest = boot["max_model_len"], boot["longest_max_model_len"]
    if boot["needed_gib"] is not None:
        text = (
            f"One request of {length:,} tokens needs {boot['needed_gib']:.2f} GiB of KV cache, and "
            f"{boot['available_kv_gib']:.2f} GiB are there"
        )
    elif length is not None and longest is not None:
        text = f"One request of {length:,} tokens does not fit the pool"
    else:
        text = "No memory was left for the KV cache"
    return f"{text}; the longest that fits is {longest:,}." if longest is not None else f"{text}."


def _missing(boot: dict[str, Any]) -> list[str]:
    return [f"The log does not say: {', '.join(boot['missing'])}."] if boot["missing"] else []


def _llama(boot: dict[str, Any]) -> list[str]:
    derived, out = boot["derived"], []
    if boot["projected_mib"] is not None:
        out.append(_fit(boot))
    if boot["kv_mib"] is not None:
        cells = f" for {boot['cells']:,} cells" if boot["cells"] else ""
        types = f", K in {boot['type_k']} and V in {boot['type_v']}" if boot.get("type_k") else ""
        cost = f": {derived['kv_bytes_per_token']:,} bytes a token" if derived["kv_bytes_per_token"] else ""
        out.append(f"The KV cache takes {boot['kv_mib']:,.2f} MiB{cells}{types}{cost}.")
    if boot["swa_mib"] is not None:
        out.append(f"The sliding windows take {boot['swa_mib']:,.2f} MiB, whatever the context.")
    if boot["recurrent_mib"] is not None:
        each = derived["state_mib_per_conversation"]
        share = f", {each:g} MiB a conversation however short" if each else ""
        out.append(f"Recurrent state takes {boot['recurrent_mib']:,.2f} MiB{share}.")
    if boot["draft_kv_mib"] is not None:
        out.append(f"The drafter's own cache takes {boot['draft_kv_mib']:,.2f} MiB.")
    if boot["compute_mib"] is not None:
        out.append(f"The compute buffer takes {boot['compute_mib']:,.2f} MiB.")
    if derived["longest_request"] is not None:
        out.append(f"The longest request is {derived['longest_request']:,} tokens.")
    if derived["most_conversations"] is not None:
        out.append(f"At most {plural(derived['most_conversations'], 'conversation')} can be live at once: the slots bind.")
    for one in derived["flags"]:
        tokens = f", {one['tokens']:,} tokens of cache" if one["tokens"] is not None else ""
        out.append(f"With {one['flag']} it takes {one['saves_mib']:,.2f} MiB less{tokens}.")
    return [*out, *_missing(boot)]


def _fit(boot: dict[str, Any]) -> str:
    derived = boot["derived"]
    text = f"The fit pass projected {boot['projected_mib']:,} MiB against {boot['free_mib']:,} MiB free"
    if boot["leave_mib"] is not None:
        text += f": it leaves {boot['leave_mib']:,} MiB where {boot['margin_mib']:,} were wanted"
        if derived["room_tokens_at_most"]:
            text += f", room for {derived['room_tokens_at_most']:,} tokens more at the price of the KV cache alone"
    elif boot["deficit_mib"] is not None:
        text += f": {boot['deficit_mib']:,} MiB too many"
    moved = ", so layers went to the CPU" if boot["verdict"] == "evict" else ""
    return f"{text}. Verdict: {boot['verdict'] or 'not in the log'}{moved}."
