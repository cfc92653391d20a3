"""A busy hour of a service, event by event, over the same ladder code that a server would run.

A `Scene` is the specification: demand, policy, rig, how many rigs, how long. `run(scene, seed)` is one run of it;
`aelius_math.experiments` repeats runs and says how sure their means are. The accounts of the rig that an event touches,
its blocks and its ladder, must add up at every event; `Unbalanced` is raised if one does not.

What is modelled. A person sends a prompt, reads the answer, thinks, sends the next. The gate (policy) gives a slice or
makes the person wait; a slice is held from turn to turn and ends `idle_timeout` after the last answer. The engine takes
requests first come first served: one begins when its blocks can be had, all it will need at once, so nothing is
preempted; prompts are read one after the other; answers are written side by side. What a conversation leaves behind is
evictable cache; a later turn reads only what lies behind the last whole block that is still there.

The loop is a heap of its own: simpy with the same checks and no model at all was no faster than this with both.

One long module: every event changes the state that the others read.

Not modelled: the slowing of answers by other people's prompts, the blocks that a request takes only later, drafts.
"""

from __future__ import annotations

import heapq
from collections import deque
from math import isfinite
from random import Random

from aelius_math.account import Account
from aelius_math.demand import Turn
from aelius_math.ladder import Arena, Wait
from aelius_math.scene import Moment, Outcome, Scene


class _Session:
    __slots__ = ("begun", "decode_end", "gate_wait", "history", "key", "lease", "live", "number", "rig", "script", "sent", "state")

    def __init__(self, key: int, script: list[Turn]) -> None:
        self.key = key
        self.script = script
        self.number = 0  # of the present turn
        self.history = 0  # tokens of the conversation so far
        self.lease = 0  # tokens of the slice it holds
        self.live = 0  # tokens counted against its rig while it holds a slice
        self.sent = 0.0
        self.gate_wait = 0.0
        self.begun = 0.0
        self.state = "thinks"  # thinks, gate, engine, runs, gone
        self.rig: _Running = None  # type: ignore[assignment]


class _Running:
    """One rig at work."""

    __slots__ = ("account", "arena", "leased", "live", "prefill_free", "queue", "running")

    def __init__(self, scene: Scene) -> None:
        self.account = Account(scene.rig.costs.usable_blocks)
        self.arena: Arena | None = scene.policy.ladder.open() if scene.policy.ladder is not None else None
        self.queue: deque[_Session] = deque()
        self.prefill_free = 0.0
        self.running = 0
        self.leased = 0
        self.live = 0

    @property
    def busy(self) -> int:
        return self.leased + self.running + len(self.queue) + (self.arena.waiters if self.arena is not None else 0)


ARRIVES, SENDS, ENDS, IDLE, YIELDS, LEAVES = range(6)


class Simulation:
    """One run. `step` is an event; `run` below goes through them all."""

    def __init__(self, scene: Scene, seed: int, trace: bool = False) -> None:
        self.scene = scene
        self.random = Random(seed)
        self.route = Random(seed + 1_000_003)
        self.rigs = [_Running(scene) for _ in range(scene.rigs)]
        self.out = Outcome(seed)
        self.trace = trace
        self.begin = scene.warm_up * 3600
        self.end = self.begin + scene.hours * 3600
        self.rate = scene.demand.sessions_per_hour * scene.scale / 3600
        self.heap: list[tuple[float, int, int, _Session | None, int]] = []
        self.count = 0
        self.now = 0.0
        self.sessions: dict[int, _Session] = {}
        costs = scene.rig.costs
        self.block_size = costs.block_size
        self.fixed = costs.blocks(1, running=scene.rig.count == "running") - 1
        self._push(self.random.expovariate(self.rate), ARRIVES)

    def _push(self, time: float, kind: int, session: _Session | None = None, mark: int = 0) -> None:
        self.count += 1
        heapq.heappush(self.heap, (time, self.count, kind, session, mark))

    def step(self) -> bool:
        """One event; False when the measured hours are over."""
        time, _, kind, session, mark = heapq.heappop(self.heap)
        measured = min(time, self.end) - max(self.now, self.begin)
        if measured > 0:
            self._measure(measured)
        self.now = time
        if time >= self.end:
            return False
        self.out.events += 1
        if session is None:
            session = self._arrives()
        elif kind == SENDS:
            self._sends(session)
        elif kind == ENDS:
            self._ends(session)
        elif kind == IDLE:
            if session.number == mark and session.state in ("thinks", "gone"):
                self._unlease(session)
        elif kind == YIELDS:
            self._let_in(session.rig)
        elif session.number == mark and session.state in ("gate", "engine"):
            self._leaves(session)
        rig = session.rig
        rig.account.check()
        if rig.arena is not None:
            rig.arena.check()
        return True

    def _measure(self, seconds: float) -> None:
        out, rig = self.out, self.rigs[0]
        cached = rig.account.evictable
        used = rig.account.total - rig.account.free - cached
        out.seconds += seconds
        out.mean_running += seconds * rig.running
        out.mean_leased += seconds * rig.leased
        out.mean_used += seconds * used
        out.mean_cached += seconds * cached
        if rig.prefill_free > self.now:
            out.prefill_busy += max(0.0, min(seconds, rig.prefill_free - max(self.now, self.begin)))
        out.peak_running = max(out.peak_running, rig.running)
        out.peak_leased = max(out.peak_leased, rig.leased)
        out.peak_used = max(out.peak_used, used)
        if self.trace:
            free = rig.account.free
            waiting = len(rig.queue) + (rig.arena.waiters if rig.arena is not None else 0)
            out.moments.append(Moment(max(self.now, self.begin) - self.begin, used, cached, free, rig.running, rig.leased, waiting))

    def _arrives(self) -> _Session:
        self._push(self.now + self.random.expovariate(self.rate), ARRIVES)
        self.count += 1
        session = _Session(self.count, self.scene.demand.script(self.random))
        if len(self.rigs) == 1:
            session.rig = self.rigs[0]
        elif self.scene.routing == "random":
            session.rig = self.route.choice(self.rigs)
        else:
            session.rig = min(self.rigs, key=lambda rig: rig.busy)
        self.sessions[session.key] = session
        self._sends(session)
        return session

    def _sends(self, session: _Session) -> None:
        demand, turn, now = self.scene.demand, session.script[session.number], self.now
        session.sent = now
        need = session.history + turn.prompt + demand.answer_room
        if need > demand.longest:
            need -= session.history
            session.history = 0  # a new conversation
            session.rig.account.evict(session.key)
        arena = session.rig.arena
        if arena is None or session.lease >= need:
            self._engine(session)
            return
        session.state = "gate"
        held = arena.holding(session.key)
        answer = arena.admit(session.key, need, now) if held is None else arena.promote(session.key, need, now)
        self._yields(arena)
        if isinstance(answer, Wait):
            if answer.until is not None and isfinite(answer.until):
                self._push(answer.until, YIELDS, session)
            if isfinite(demand.patience):
                self._push(now + demand.patience, LEAVES, session, session.number)
        else:
            self._lease(session, answer.tokens)
            self._engine(session)
        self._let_in(session.rig)

    def _lease(self, session: _Session, tokens: int) -> None:
        rig = session.rig
        if not session.lease:
            rig.leased += 1
        session.lease = tokens
        live = min(tokens, session.history + session.script[session.number].prompt)
        rig.live += live - session.live
        session.live = live

    def _drop(self, session: _Session) -> None:
        if session.lease:
            session.rig.leased -= 1
            session.rig.live -= session.live
            session.lease = session.live = 0

    def _let_in(self, rig: _Running) -> None:
        """Those who were given a slice go on."""
        arena = rig.arena
        if arena is None:
            return
        grants = arena.serve(self.now)
        self._yields(arena)
        for granted in grants:
            session = self.sessions[granted.session]  # type: ignore[index]
            self._lease(session, granted.tokens)
            self._engine(session)

    def _yields(self, arena: Arena) -> None:
        for key in arena.yielded():
            self._drop(self.sessions[key])  # type: ignore[index]

    def _engine(self, session: _Session) -> None:
        """Let in by the gate: into the engine's queue, and on if its blocks can be had."""
        session.gate_wait = self.now - session.sent
        session.state = "engine"
        rig = session.rig
        rig.queue.append(session)
        self._begin(rig)
        if session.state == "engine" and session.gate_wait == 0 and isfinite(self.scene.demand.patience):
            self._push(self.now + self.scene.demand.patience, LEAVES, session, session.number)

    def _begin(self, rig: _Running) -> None:
        """Requests begin in order, each when all its blocks can be had."""
        queue, account, size = rig.queue, rig.account, self.block_size
        demand, out, now = self.scene.demand, self.out, self.now
        while queue:
            session = queue[0]
            turn = session.script[session.number]
            prompt = session.history + turn.prompt
            cost = -(-(prompt + turn.answer) // size) + self.fixed
            if not account.payable(cost):
                return
            queue.popleft()
            hit = session.history // size * size if session.key in account.cached else 0
            account.pay(session.key, cost)
            rig.running += 1
            session.state = "runs"
            start = max(now, rig.prefill_free)
            first = start + (prompt - hit) / turn.prefill
            rig.prefill_free = first
            speed = min(turn.decode, demand.decode_together / rig.running)
            self._push(first + turn.answer / speed, ENDS, session)
            if self.begin <= session.sent:
                wait = start - session.sent
                out.turns += 1
                out.prompt_tokens += prompt
                out.hit_tokens += hit
                out.delayed += wait > 0
                out.answered_late += first - session.sent > demand.on_time
                if wait > demand.on_time:
                    self._late(session, now - session.sent - session.gate_wait, start - now)
                out.overdrawn_turns += rig.live > self.scene.rig.tokens

    def _late(self, session: _Session, blocks: float, prefill: float) -> None:
        out = self.out
        out.late += 1
        most = max(session.gate_wait, blocks, prefill)
        if most == session.gate_wait:
            out.late_gate += 1
        elif most == blocks:
            out.late_blocks += 1
        else:
            out.late_prefill += 1

    def _ends(self, session: _Session) -> None:
        rig, turn = session.rig, session.script[session.number]
        session.history += turn.prompt + turn.answer
        keep = 0
        if self.scene.rig.prefix_caching and session.history >= self.block_size:
            keep = session.history // self.block_size + self.scene.rig.cached_fixed
        rig.account.give_back(session.key, min(keep, rig.account.used[session.key]))
        rig.running -= 1
        session.number += 1
        more = session.number < len(session.script)
        session.state = "thinks" if more else "gone"
        if more:
            self._push(self.now + turn.think, SENDS, session)
        if rig.arena is not None:
            rig.live += session.history - session.live if session.lease else 0
            session.live = session.history if session.lease else 0
            if self.scene.policy.idle_timeout == 0:
                self._unlease(session)
            else:
                self._push(self.now + self.scene.policy.idle_timeout, IDLE, session, session.number)
        elif not more:
            del self.sessions[session.key]
        self._begin(rig)

    def _unlease(self, session: _Session) -> None:
        """Its slice goes back; what it leaves in the engine's cache stays until it is evicted."""
        arena = session.rig.arena
        if arena is not None and arena.holding(session.key) is not None:
            arena.release(session.key, self.now)
            self._drop(session)
            self._let_in(session.rig)
        if session.state == "gone":
            self.sessions.pop(session.key, None)

    def _leaves(self, session: _Session) -> None:
        """Out of patience: the turn is late and lost, the conversation over."""
        rig, waited = session.rig, self.now - session.sent
        if session.state == "engine":
            rig.queue.remove(session)
        else:
            session.gate_wait = waited
        if self.begin <= session.sent:
            self.out.turns += 1
            self.out.lost += 1
            self.out.delayed += 1
            self.out.answered_late += 1
            self._late(session, waited - session.gate_wait, 0.0)
        session.state = "gone"
        if rig.arena is not None:
            if session.lease or rig.arena.waits(session.key):
                rig.arena.release(session.key, self.now)
            self._drop(session)
            self._let_in(rig)
        self.sessions.pop(session.key, None)
        self._begin(rig)

    def finish(self) -> Outcome:
        """Count those still waiting, and turn sums over time into means."""
        out, demand = self.out, self.scene.demand
        for session in self.sessions.values():
            waited = self.end - session.sent
            if session.state in ("gate", "engine") and session.sent >= self.begin and waited > demand.on_time:
                out.turns += 1
                out.answered_late += 1
                out.delayed += 1
                if session.state == "gate":
                    session.gate_wait = waited
                self._late(session, waited - session.gate_wait, 0.0)
        for name in ("mean_running", "mean_leased", "mean_used", "mean_cached", "prefill_busy"):
            setattr(out, name, getattr(out, name) / out.seconds)
        return out


def run(scene: Scene, seed: int, trace: bool = False) -> Outcome:
    """One run of a scene; the same seed gives the same run."""
    simulation = Simulation(scene, seed, trace)
    while simulation.step():
        pass
    return simulation.finish()
