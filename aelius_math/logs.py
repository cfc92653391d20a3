"""A boot log read: what vLLM or llama.cpp says of its memory, boot by boot, and what follows from it.

    read(text or lines)     the dict that `aelius-math log --json` prints

The text may be whole or cut, coloured, prefixed by whatever it went through, with several ranks or boots in it.
What it does not say is None. What two readings fit is "ambiguous", with the candidates; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aelius_math import log_llamacpp, log_llamacpp_lines, log_vllm, log_vllm_lines
from aelius_math.log_boot_llamacpp import llama_boot
from aelius_math.log_boot_vllm import vllm_boot
from aelius_math.log_lines import Keys, blocks, cut, statements
from aelius_math.log_sentences import sentences
from aelius_math.units import AeliusError

LOOKED_FOR = (
    'the lines of a boot log: vLLM\'s "GPU KV cache size: ... tokens", "Maximum concurrency for ... tokens per request", '
    '"Available KV cache memory: ... GiB", "Setting attention block size to ... tokens", "non-default args: ...", '
    '"To serve at least one request with the model\'s max seq len ..."; llama.cpp\'s "llama_kv_cache: size = ... MiB", '
    '"llama_memory_recurrent: size = ... MiB", "compute buffer size = ... MiB", "projected to use ... MiB of device memory"'
)
MOST_BOOTS = 1000


def read(source: str | bytes | Iterable[str] | Iterable[bytes]) -> dict[str, Any]:
    """What a boot log says, boot by boot: engine, boots (tokens, blocks, MiB ...), notes, sentences.

    Raises AeliusError, with the lines that were looked for, where the text is no boot log.

    >>> log = '''INFO [kv_cache_utils.py:1733] GPU KV cache size: 289,661 tokens
    ... INFO [kv_cache_utils.py:1734] Maximum concurrency for 262,144 tokens per request: 1.10x
    ... INFO [interface.py:606] Setting attention block size to 1616 tokens.'''
    >>> boot = read(log)["boots"][0]
    >>> boot["tokens"], boot["derived"]["num_blocks"], boot["derived"]["blocks_per_request"]
    (289661, 200, 181)
    """
    return _read(blocks(source))


def read_stream(parts: Iterable[str] | Iterable[bytes]) -> dict[str, Any]:
    """`read` for a text that comes in pieces, broken anywhere; the pieces are not kept."""
    return _read(cut(parts))


def _read(source: Iterable[str]) -> dict[str, Any]:
    vllm, llama = log_vllm.VllmReader(), log_llamacpp.LlamaReader()
    done: list[dict[str, Any]] = []
    more = 0
    keys = Keys(log_vllm_lines.KEYS + log_llamacpp_lines.KEYS, log_vllm_lines.PARTS + log_llamacpp_lines.PARTS)
    first, second = vllm.take, llama.take
    for statement in statements(source, keys):
        if not first(statement) and second(statement):
            first, second = second, first
        while len(vllm.boots) > 1:
            more += _keep(done, vllm.boots.pop(0))
        while len(llama.boots) > 1:
            more += _keep(done, llama.boots.pop(0))
    vllm.finish()
    llama.finish()
    for boot in vllm.boots:
        more += _keep(done, boot)
    for last in llama.boots:
        more += _keep(done, last)
    if not done:
        raise AeliusError("log", "no line of a boot log", LOOKED_FOR)
    engines = list(dict.fromkeys(boot["engine"] for boot in done))
    notes = [f"More boots in the log: {more:,}, not listed."] if more else []
    if len(engines) > 1:
        notes.append("The log holds boots of two engines.")
    for index, entry in enumerate(done, 1):
        notes += [note if len(done) == 1 else f"Boot {index}: {note}" for note in entry["notes"]]
    return {"engine": engines[0] if len(engines) == 1 else "both", "boots": done, "notes": notes}


def _keep(done: list[dict[str, Any]], boot: log_vllm.VllmBoot | log_llamacpp.LlamaBoot) -> int:
    """Keep a finished boot; 1 where it is one too many."""
    if isinstance(boot, log_vllm.VllmBoot):
        if not log_vllm.evidence([boot]):
            return 0
    elif not log_llamacpp.evidence([boot]):
        return 0
    if len(done) >= MOST_BOOTS:
        return 1
    entry = vllm_boot(boot) if isinstance(boot, log_vllm.VllmBoot) else llama_boot(boot)
    entry["sentences"] = sentences(entry)
    done.append(entry)
    return 0
