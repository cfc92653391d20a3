"""The simulated busy hour: checked by hand, against Erlang's formulas, and against planted faults."""

from dataclasses import dataclass, replace
from math import inf

import pytest

from aelius_math.account import Account, Unbalanced
from aelius_math.demand import Turn, assumed, table
from aelius_math.erlang import erlang_b, erlang_c
from aelius_math.experiments import at_scale, estimate, largest_scale, repeat, share_waiting, textbook
from aelius_math.ladder import Arena, BlockCosts, Ladder, Slice
from aelius_math.scene import Policy, Rig, Scene
from aelius_math.simulation import Simulation, run
from aelius_math.units import AeliusError

COSTS = BlockCosts(usable_blocks=199, block_size=1616, fixed_blocks=18, transient_blocks=3)
RIG = Rig(costs=COSTS, tokens=289_661, cached_fixed=3)
LADDER = Ladder(pool=289_661, short_tokens=6_990)
GATED = Policy(name="ladder", ladder=LADDER)
OPEN = Policy(name="no gate", ladder=None)


def scene(policy=GATED, **changes):
    return Scene(**{"demand": assumed(), "policy": policy, "rig": RIG, "scale": 4, "hours": 2, **changes})


@dataclass(frozen=True)
class Scripted:
    """One conversation after another, all the same."""

    turns: tuple[Turn, ...]
    sessions_per_hour: float = 1.0
    answer_room: int = 2_000
    longest: int = 65_536
    patience: float = inf
    decode_together: float = inf
    on_time: float = 10.0

    def script(self, random):
        return list(self.turns)


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    assert run(scene(), 3) == run(scene(), 3)
    assert run(scene(), 3) != run(scene(), 4)


@pytest.mark.parametrize("policy", [GATED, OPEN])
def test_what_a_run_counts_adds_up(policy):
    found = run(scene(policy, scale=10), 1, trace=True)
    assert found.turns > 1_000
    assert found.late == found.late_gate + found.late_blocks + found.late_prefill
    assert found.lost <= found.late <= found.delayed <= found.turns
    assert found.hit_tokens <= found.prompt_tokens
    assert found.seconds == pytest.approx(7200)
    assert all(m.used + m.cached + m.free == 199 for m in found.moments)
    assert found.peak_used == max(m.used for m in found.moments) <= 199
    assert found.peak_leased <= (22 if policy is GATED else 0)


def test_two_turns_alone_by_hand():
    # 2,000 tokens read at 1,000/s, 1,232 written at 100/s: 3,232 tokens are two whole blocks, found again by turn two
    turns = (Turn(2_000, 1_232, 45.0, 1_000, 100), Turn(768, 100, 45.0, 1_000, 100))
    simulation = Simulation(scene(demand=Scripted(turns), scale=0.001, warm_up=0), 1)
    first = simulation.heap[0][0]
    simulation.end = first + 100
    while simulation.step():
        pass
    found = simulation.finish()
    assert (found.turns, found.delayed, found.late) == (2, 0, 0)
    assert (found.prompt_tokens, found.hit_tokens) == (2_000 + 4_000, 3_232)
    busy = (2 + 12.32) + (0.768 + 1.0)
    assert found.mean_running * found.seconds == pytest.approx(busy)
    # running it holds ceil(3,232 / 1,616) + 15 = 17 blocks, then ceil(4,100 / 1,616) + 15 = 18
    assert found.peak_used == 18
    assert found.mean_used * found.seconds == pytest.approx(17 * 14.32 + 18 * 1.768)
    assert simulation.rigs[0].account.cached == {next(iter(simulation.sessions)): 4_100 // 1_616 + 3}
    # held over both turns, the thinking between and the rest of the 100 s
    assert found.mean_leased * found.seconds == pytest.approx(100)


def test_an_idle_slice_ends_after_the_timeout():
    turns = (Turn(1_000, 100, 45.0, 1_000, 100),)
    for timeout, held in ((20.0, 22.0), (0.0, 2.0)):
        policy = Policy(name="ladder", ladder=LADDER, idle_timeout=timeout)
        simulation = Simulation(scene(policy, demand=Scripted(turns), scale=0.001, warm_up=0), 1)
        simulation.end = simulation.heap[0][0] + 100
        while simulation.step():
            pass
        assert simulation.finish().mean_leased * simulation.out.seconds == pytest.approx(held)
        assert simulation.sessions == {}


def test_who_runs_out_of_patience_is_late_and_lost():
    turns = (Turn(60_000, 2_000, 45.0, 1_000, 10),)
    demand = replace(Scripted(turns), patience=60.0, sessions_per_hour=120)
    one = Policy(name="one place", ladder=Ladder(pool=289_661, slices=(65_536,), shorts=0), idle_timeout=0)
    found = run(scene(one, demand=demand, scale=1), 1)
    assert found.lost > 50
    assert found.late_gate >= found.lost
    assert found.peak_leased == 1


def test_the_share_that_waits_agrees_with_erlang_c_for_two_servers():
    found = share_waiting(repeat(textbook(2, 1.4, hours=14), range(16)), 1.4)
    assert found.error <= 0.01 * found.mean
    assert abs(found.mean - erlang_c(2, 1.4)) <= 3 * found.error


def test_the_check_by_erlang_notices_a_server_too_many():
    found = share_waiting(repeat(textbook(3, 1.4, hours=3), range(16)), 1.4)
    assert abs(found.mean - erlang_c(2, 1.4)) > 3 * found.error


def test_erlang_by_hand():
    assert erlang_b(1, 1) == 0.5
    assert erlang_c(1, 0.3) == pytest.approx(0.3)  # one server: the share of time it is busy
    assert erlang_c(2, 1.4) == pytest.approx(0.98 / 1.7)  # a^2 / 2 / (1 - a/2) of that and 1 + a
    assert erlang_c(2, 2) == 1.0
    for c, a, shares in ((22, 14, (0.012338, 0.033213)), (18, 14.4, (None, 0.278960)), (2, 1.4, (None, 0.576471))):
        assert shares[0] in (None, round(erlang_b(c, a), 6))
        assert round(erlang_c(c, a), 6) == shares[1]


def leaky(self, key, keep=0, give_back=Account.give_back):
    give_back(self, key, keep)
    self.free -= 1


def blind(self, session, tokens, or_question):
    """Every ask is granted, whatever is left."""
    granted = Slice(session, max(self._costs), max(self._costs.values()))
    if session in self._held:
        self._take_back(session, 0)
    self.account.used[session] = granted.cost
    self.account.free -= granted.cost
    self._held[session] = granted
    self._places[granted.tokens] -= 1
    return granted


@pytest.mark.parametrize(("owner", "name", "fault"), [(Account, "give_back", leaky), (Arena, "_grant", blind)])
def test_a_planted_fault_stops_the_run(monkeypatch, owner, name, fault):
    monkeypatch.setattr(owner, name, fault)
    with pytest.raises(Unbalanced):
        run(scene(), 1)


def test_more_rigs_and_a_router_serve_more():
    crowd = scene(scale=16, warm_up=0.5)
    one, spread, led = (
        run(replace(crowd, rigs=rigs, routing=routing), 1).on_time for rigs, routing in ((1, "least"), (4, "random"), (4, "least"))
    )
    assert one < spread < led


def test_the_largest_scale_lies_where_the_share_is_met():
    base = scene(hours=1)
    scale = largest_scale(base, (1, 2), share=0.9, low=2, high=32, within=0.2)
    shares = [sum(o.on_time for o in repeat(at_scale(base, s), (1, 2))) / 2 for s in (scale, scale * 1.2)]
    assert shares[0] >= 0.9 > shares[1]


def test_every_line_of_the_demand_has_a_unit_and_a_source_or_says_that_it_is_assumed():
    for name, line in table().items():
        assert line.keys() == {"value", "unit", "source"}, name
        assert line["source"].startswith(("assumed", "the article", "this project")), name


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"turns_mean": 0.5}, "turns_mean"),
        ({"people": 0}, "sessions_per_hour"),
        ({"long_share": 2}, "long_share"),
        ({"prefill_high": 1}, "prefill_high"),
        ({"patience": -1}, "patience"),
        ({"answer_room": 65_536}, "answer_room"),
        ({"mood": 1}, "mood"),
        ({"think_mean": "long"}, "think_mean"),
    ],
)
def test_a_demand_that_cannot_be_is_refused_by_name(changes, field):
    with pytest.raises(AeliusError) as caught:
        assumed(**changes)
    assert caught.value.field == field


def test_a_mean_of_one_run_has_no_interval():
    with pytest.raises(AeliusError):
        estimate([1.0])
