"""Cliffs planted and not, and the forms that engines write their speeds in."""

import json
from itertools import pairwise
from math import exp
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aelius_math.cli import main
from aelius_math.decode import FEWEST, Sample, find_cliff, smooth_fit, upper_tail
from aelius_math.decode_timings import read_timings
from aelius_math.units import AeliusError

DEPTHS = [2_000 * (n + 1) for n in range(32)]
SEEDS = range(1_000)


def series(seed, speeds, noise=0.10, depths=DEPTHS):
    random = Random(seed)
    return [Sample(depth, speed * (1 + random.gauss(0, noise))) for depth, speed in zip(depths, speeds, strict=True)]


def fallen(place, share=0.30):
    return [50.0] * place + [50.0 * (1 - share)] * (len(DEPTHS) - place)


def test_planted_falls_of_30_percent_under_10_percent_noise_are_placed_within_one_sample_in_95_percent():
    placed = held = 0
    for seed in SEEDS:
        place = 6 + seed % 21  # anywhere but the ends
        found = find_cliff(series(seed, fallen(place)))
        if found.verdict == "cliff":
            placed += abs(DEPTHS.index(found.before) - place) <= 1
            held += found.low < DEPTHS[place] <= found.high
    assert placed >= 950
    assert held >= 930  # the interval that is said to hold 95% of them


def test_flat_series_say_none_in_99_percent():
    found = [find_cliff(series(seed, [50.0] * len(DEPTHS))).verdict for seed in SEEDS]
    assert found.count("none") >= 990
    assert set(found) <= {"none", "cliff"}


def test_a_smooth_decline_is_no_cliff():
    speeds = [1 / (0.02 + 0.03 * depth / DEPTHS[-1]) for depth in DEPTHS]  # 50 down to 20
    found = [find_cliff(series(seed, speeds, noise=0.03)) for seed in range(300)]
    assert sum(one.verdict == "cliff" for one in found) <= 3
    assert found[0].speed_before / found[0].speed_after == pytest.approx(speeds[0] / speeds[-1], rel=0.1)


def test_a_fall_within_a_smooth_decline_is_found_at_its_place():
    speeds = [(1 if n < 20 else 0.6) / (0.02 + 0.01 * depth / DEPTHS[-1]) for n, depth in enumerate(DEPTHS)]
    found = [find_cliff(series(seed, speeds, noise=0.03)) for seed in range(100)]
    assert sum(one.verdict == "cliff" and abs(one.before - DEPTHS[20]) <= 2_000 for one in found) >= 99
    assert found[0].fall == pytest.approx(0.4, abs=0.05)


def test_two_levels_by_hand():
    found = find_cliff([Sample(1_000 * n, 40.0 if n < 6 else 20.0) for n in range(1, 12)])
    assert (found.verdict, found.after, found.before, found.low, found.high) == ("cliff", 5_000, 6_000, 5_000, 6_000)
    assert (found.fall, found.speed_before, found.speed_after) == pytest.approx((0.5, 40.0, 20.0))
    assert found.confidence > 0.999


def test_a_single_slow_answer_at_the_end_is_no_cliff():
    assert find_cliff([Sample(n, 40.0 + n % 3) for n in range(20)] + [Sample(20, 10.0)]).verdict == "none"


def test_speeds_that_rise_are_no_cliff():
    assert find_cliff([Sample(n, 20.0 if n < 8 else 40.0) for n in range(16)]).verdict == "none"


def test_too_few_samples_say_nothing():
    assert find_cliff([Sample(n, 50.0) for n in range(FEWEST - 1)]).verdict == "too few"
    assert find_cliff([Sample(4_096, 50.0)] * 20).verdict == "too few"
    assert find_cliff([]).verdict == "too few"


def test_the_fall_that_is_said_to_be_visible_is_seen():
    flat = find_cliff(series(0, [50.0] * len(DEPTHS)))
    seen = sum(find_cliff(series(seed, fallen(16, flat.visible))).verdict == "cliff" for seed in range(300))
    assert seen >= 0.93 * 300


def test_the_tail_of_students_t_is_that_of_the_printed_tables():
    for t, free, tail in ((6.314, 1, 0.05), (2.228, 10, 0.025), (2.750, 30, 0.005), (3.373, 100, 0.000525)):
        assert upper_tail(t, free) == pytest.approx(tail, rel=0.01)


def test_the_smooth_fit_finds_a_line_of_times():
    depths = list(range(1, 30))
    fitted = smooth_fit(depths, smooth_fit(depths, [-0.1 * n for n in depths]))
    assert [exp(-b) - exp(-a) for a, b in pairwise(fitted)] == pytest.approx([exp(-fitted[1]) - exp(-fitted[0])] * 28, rel=1e-3)


@given(st.lists(st.tuples(st.integers(0, 300_000), st.floats(0.1, 1_000)), max_size=40))
def test_any_samples_give_a_finding_whatever_their_order(pairs):
    samples = [Sample(*pair) for pair in pairs]
    found = find_cliff(samples)
    assert found == find_cliff(samples[::-1])
    if found.verdict == "cliff":
        assert found.low <= found.after < found.before <= found.high
        assert 0.15 <= found.fall < 1
        assert 0 <= found.chance <= 1 and 0 <= found.confidence <= 1


# The lines below are in the form of public logs: llama.cpp pull requests 19408, 22929 and issue 25121, vLLM issue 26349.


def test_llama_server_answers_as_json_lines():
    lines = [
        {"timings": {"cache_n": 236, "prompt_n": 1, "predicted_n": 36, "predicted_per_second": 52.9}},
        {"usage": {"prompt_tokens": 500}, "timings": {"prompt_n": 20, "predicted_n": 100, "predicted_per_second": 50.0}},
        {"timings": {"prompt_n": 20, "predicted_n": 1, "predicted_per_second": 900.0}},  # one token is no speed
        {"error": "busy"},
    ]
    found = read_timings("\n".join(map(json.dumps, lines)))
    assert found.samples == [(237 + 18, 52.9), (550, 50.0)]


def test_timings_without_cache_n_are_placed_with_a_note():
    found = read_timings(json.dumps({"timings": {"prompt_n": 20, "predicted_n": 10, "predicted_per_second": 50.0}}))
    assert found.samples == [(25, 50.0)]
    assert found.notes == ["1 timings without cache_n: the depth leaves out what was found in the cache"]


def test_the_running_totals_of_one_answer_are_differenced():
    def chunk(n, ms):
        timings = {"cache_n": 0, "prompt_n": 1_000, "prompt_ms": 9.0, "predicted_n": n, "predicted_ms": ms}
        whole = {"object": "chat.completion.chunk", "timings": {**timings, "predicted_per_second": 1000 * n / ms}}
        return "data: " + json.dumps(whole)

    # 20 ms a token for 200 tokens, 40 ms after
    text = "\n\n".join(chunk(n, 20.0 * n + 20.0 * max(0, n - 200)) for n in range(8, 401, 8))
    found = read_timings(text + "\n\ndata: [DONE]\n")
    assert [speed for _, speed in found.samples] == pytest.approx([50.0] * 3 + [25.0] * 3)
    assert [depth for depth, _ in found.samples] == [1_000 + 8 + 32 + 64 * n for n in range(6)]


LLAMA_LOG = """\
slot launch_slot_: id  0 | task 0 | processing task, is_child = 0
slot update_slots: id  0 | task 0 | new prompt, n_ctx_slot = 32768, n_keep = 0, task.n_tokens = 1371
slot print_timing: id  0 | task 124 |\x20
prompt eval time =    5093.47 ms /  1360 tokens (    3.75 ms per token,   267.01 tokens per second)
       eval time =     319.58 ms /    10 tokens (   31.96 ms per token,    31.29 tokens per second)
      total time =    5413.05 ms /  1370 tokens
slot      release: id  0 | task 124 | stop processing: n_tokens = 1369, truncated = 0
48.32.030.312 I slot print_timing: id  0 | task 48672 | prompt eval time =   36815.18 ms / 80064 tokens (0.46 ms per token,  2174.76 tokens per second)
48.32.030.318 I slot print_timing: id  0 | task 48672 |        eval time =    1824.19 ms /    90 tokens (   20.27 ms per token,    49.34 tokens per second)
48.32.032.529 I slot      release: id  0 | task 48672 | stop processing: n_tokens = 80153, truncated = 0
"""


def test_llama_servers_log_places_an_answer_by_where_it_stopped():
    assert read_timings(LLAMA_LOG).samples == [(1_364, 31.29), (80_108, 49.34)]


def test_llama_servers_log_of_a_running_answer_gives_its_inside():
    lines = [
        "I slot   operator(): id  3 | task 7 | new prompt, n_ctx_slot = 131072, n_keep = 4, task.n_tokens = 14892",
        *(f"I slot print_timing: id  3 | task 7 | n_decoded = {n:6}, tg =  12.93 t/s, tg_3s =  12.57 t/s" for n in (38, 76)),
        "I slot print_timing: id  3 | task 7 |        eval time =   9000 ms /   90 tokens (  77 ms per token,  12.9 tokens per second)",
        "I slot      release: id  3 | task 7 | stop processing: n_tokens = 14981, truncated = 0",
    ]
    assert read_timings("\n".join(lines)).samples == [(14_930, 12.57), (14_968, 12.57)]


def vllm_line(prompt, speed, running, usage):
    return (
        f"(APIServer pid=1) INFO 10-06 11:26:41 [loggers.py:127] Engine 000: Avg prompt throughput: {prompt} tokens/s, "
        f"Avg generation throughput: {speed} tokens/s, Running: {running} reqs, Waiting: 0 reqs, "
        f"GPU KV cache usage: {usage}%, Prefix cache hit rate: 16.4%"
    )


def test_vllms_log_counts_the_intervals_of_one_request_alone():
    lines = [vllm_line(0.0, 149.6, 1, 33.4), vllm_line(137.4, 13.9, 1, 1.0), vllm_line(0.0, 300.0, 3, 60.0)]
    lines += [vllm_line(0.0, 126.6, 0, 0.0), vllm_line(0.0, 148.3, 1, 36.3)]
    found = read_timings("\n".join(lines))
    assert (found.samples, found.unit) == ([(33.4, 149.6), (36.3, 148.3)], "% of the pool")
    assert found.notes == ["1 intervals left out, because several requests shared them"]
    found = read_timings("\n".join(["INFO [kv_cache_utils.py] GPU KV cache size: 289,661 tokens", *lines]))
    assert found.samples[0] == pytest.approx((0.334 * 289_661, 149.6))
    assert found.unit == "tokens"


def test_llama_bench_and_ones_own_lines():
    lines = [{"n_depth": 4_096, "n_gen": 128, "avg_ts": 41.5}, {"n_depth": 4_096, "n_gen": 0, "avg_ts": 900.0}]
    lines.append({"context": 8_192, "tokens_per_second": 40.0})
    assert read_timings("\n".join(map(json.dumps, lines))).samples == [(4_096, 41.5), (8_192, 40.0)]
    assert read_timings(json.dumps(lines)).samples == [(4_096, 41.5), (8_192, 40.0)]


@pytest.mark.parametrize("text", ["", "hello", "{}", '{"timings": {}}', '{"timings": 5}', "[" * 100_000, '{"context": NaN}'])
def test_a_text_without_speeds_is_refused(text):
    with pytest.raises(AeliusError) as caught:
        read_timings(text)
    assert caught.value.field == "FILE"


@settings(max_examples=40)
@given(st.text() | st.lists(st.sampled_from(LLAMA_LOG.splitlines()), max_size=12).map("\n".join))
def test_no_text_is_an_accident(text):
    try:
        found = read_timings(text)
    except AeliusError:
        return
    find_cliff(found.samples)


def test_the_command_says_where_the_cliff_is(capsys, tmp_path):
    file = tmp_path / "timings.jsonl"
    lines = [{"context": depth, "tokens_per_second": 48.0 if depth <= 64_000 else 24.0} for depth in range(4_000, 100_001, 4_000)]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert main(["decode", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["verdict"], found["after"], found["before"], found["unit"]) == (1, "cliff", 64_000, 68_000, "tokens")
    assert main(["decode", str(file)]) == 0
    assert capsys.readouterr().out.startswith("A cliff: decoding falls by 50% between 64,000 and 68,000 tokens, from 48.0 to 24.0")


def test_the_command_refuses_a_file_it_cannot_use_on_one_line(capsys, tmp_path):
    (tmp_path / "empty").write_text("")
    for name in ("empty", "absent"):
        assert main(["decode", str(tmp_path / name)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("aelius-math decode: FILE: ") and err.count("\n") == 1
