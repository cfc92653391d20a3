"""Closed forms for a queue with c servers and an offered load of a (mean number busy if there were servers enough)."""

from __future__ import annotations

from collections.abc import Callable

from aelius_math.units import AeliusError, whole


def _load(load: float) -> float:
    if isinstance(load, bool) or not isinstance(load, (int, float)) or not 0 < load < 1e9:
        raise AeliusError("load", load, "a number above 0")
    return load


def erlang_b(servers: int, load: float) -> float:
    """The share of arrivals [0..1] that find every server busy, if those who do are turned away.

    >>> round(erlang_b(22, 14), 6)
    0.012338
    """
    blocked = 1.0
    for server in range(1, whole("servers", servers) + 1):
        blocked = _load(load) * blocked / (server + load * blocked)
    return blocked


def erlang_c(servers: int, load: float) -> float:
    """The share of arrivals [0..1] that wait, if they wait until served; 1 when the load is not below the servers.

    >>> [round(erlang_c(c, a), 6) for c, a in ((22, 14), (18, 14.4), (2, 1.4))]
    [0.033213, 0.27896, 0.576471]
    """
    if _load(load) >= whole("servers", servers):
        return 1.0
    blocked = erlang_b(servers, load)
    return blocked / (1 - load / servers * (1 - blocked))


def fewest(servers_each: int, share: Callable[[int], float], most: float) -> int:
    """Fewest rigs of `servers_each` servers for which `share(servers)` is at most `most`.

    >>> fewest(22, lambda servers: erlang_c(servers, 140), 0.05)
    8
    """
    rigs = 1
    while share(rigs * servers_each) > most:
        rigs += 1
    return rigs
