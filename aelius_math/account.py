"""Who holds a budget: free + used + cached = total, in whole tokens or blocks, at every instant.

Used is held by someone. Cached was held and may still be of use, but whoever needs room takes it, oldest first: what an
engine calls evictable prefix cache. Nothing is granted that is not there, so the sum can only break by a fault in
the code; `check` recomputes it from the parts and says so.
"""

from __future__ import annotations

from collections.abc import Hashable

from aelius_math.units import AeliusError, whole


class Unbalanced(RuntimeError):
    """The parts of a budget no longer add up: a fault of the program, not of its caller."""


class Account:
    """A budget [tokens or blocks] and its holders.

    >>> account = Account(199)
    >>> account.pay("a", 181)
    >>> account.give_back("a", keep=181)
    >>> account.free, account.cached
    (18, {'a': 181})
    >>> account.pay("b", 19)
    >>> account.free, account.used, account.cached
    (180, {'b': 19}, {})
    """

    def __init__(self, total: int) -> None:
        self.total = whole("total", total, 0)
        self.free = total
        self.used: dict[Hashable, int] = {}
        self.cached: dict[Hashable, int] = {}  # oldest first
        self.evictable = 0  # all that is cached

    def payable(self, cost: int) -> bool:
        """Whether this much is free or can be made so by evicting what is only cached."""
        return cost <= self.free + self.evictable

    def pay(self, key: Hashable, cost: int) -> None:
        """Let `key` hold `cost` more; its own cached part is used up first, then the oldest of others is evicted.

        Raises AeliusError, and changes nothing, if that much is neither free nor cached.
        """
        whole("cost", cost, 0)
        if not self.payable(cost):
            raise AeliusError("cost", cost, f"at most the {self.free + self.evictable:,} that nobody holds")
        if key in self.cached:
            self.evict(key)
        while self.free < cost:
            self.evict(next(iter(self.cached)))
        self.free -= cost
        self.used[key] = self.used.get(key, 0) + cost

    def give_back(self, key: Hashable, keep: int = 0) -> None:
        """End what `key` holds; `keep` of it stays cached, as the newest, until somebody needs the room."""
        held = self.used.get(key)
        if held is None:
            raise AeliusError("key", key, "one that holds a part of the budget")
        whole("keep", keep, 0, held)
        del self.used[key]
        self.free += held - keep
        if keep:
            self.cached[key] = self.cached.pop(key, 0) + keep
            self.evictable += keep

    def evict(self, key: Hashable) -> None:
        """Forget what is cached for `key`."""
        freed = self.cached.pop(key, 0)
        self.evictable -= freed
        self.free += freed

    def check(self) -> None:
        """Raise Unbalanced unless free + used + cached = total, none of them negative."""
        used, cached = sum(self.used.values()), sum(self.cached.values())
        if self.free < 0 or cached != self.evictable or self.free + used + cached != self.total:
            raise Unbalanced(f"{self.free:,} free + {used:,} used + {cached:,} cached is not {self.total:,}")
