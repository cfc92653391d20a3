"""The stored long runs: what they claim, and that a seed still gives what was stored."""

import pytest

from aelius_math import busy_hour
from aelius_math.demand import table
from aelius_math.erlang import erlang_c
from aelius_math.experiments import textbook
from aelius_math.scene import VERSION
from aelius_math.simulation import run
from aelius_math.units import AeliusError

STORED = busy_hour.stored()
PARTS = STORED["parts"]


def test_the_stored_runs_are_of_this_model_and_this_demand():
    assert STORED["version"] == VERSION
    assert STORED["demand"] == {name: line["value"] for name, line in table().items()}


@pytest.mark.parametrize(("servers", "load"), [(2, 1.4), (18, 14.4)])
def test_the_share_that_waits_agrees_with_erlang_c_at_one_percent(servers, load):
    (row,) = [row for row in PARTS["erlang"] if (row["servers"], row["load"]) == (servers, load)]
    assert row["exact"] == pytest.approx(erlang_c(servers, load), rel=1e-12)
    assert row["standard_error"] <= 0.01 * row["exact"]
    assert abs(row["simulated"] - row["exact"]) <= 3 * row["standard_error"]


def test_the_first_stored_run_against_erlang_comes_out_again():
    row = PARTS["erlang"][0]
    again = run(textbook(row["servers"], row["load"], row["hours"]), row["seeds"][0])
    assert again.delayed == row["first_delayed"]


@pytest.mark.parametrize("name", ["ladder", "no gate", "blocks, idle 0 s"])
def test_the_first_stored_busy_hours_come_out_again(name):
    row = PARTS["now"][name]
    again = run(busy_hour.scene(name, hours=20), row["seeds"][0])
    assert again.on_time == pytest.approx(row["first_on_time"], abs=1e-12)


@pytest.mark.parametrize("scale", ["1", "6"])
def test_in_the_stored_busy_hour_used_cached_and_free_are_all_the_blocks(scale):
    rows = PARTS["hour"][scale]["rows"]
    assert len(rows) == 180
    assert {used + cached + free for _, used, cached, free, *_ in rows} == {199}


def test_every_assumed_line_of_the_demand_was_varied_but_the_scale_itself():
    varied = {row["line"] for row in PARTS["sensitivity"]} | {"prefill_high", "decode_high"}  # moved with their lows
    assert table().keys() - varied == {"people", "sessions_per_person"}


def test_stored_runs_of_another_rig_are_refused_with_the_command(monkeypatch):
    busy_hour.stored.cache_clear()
    monkeypatch.setattr(busy_hour, "simulated_rig", lambda: {"usable_blocks": 201})
    with pytest.raises(AeliusError, match=r"simulated\.json: .*make simulate"):
        busy_hour.stored()
