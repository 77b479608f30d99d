"""The queue with m servers, Poisson arrivals and exponential service: M/M/m (Erlang 1917; Bolch et al., 6.5)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Queue:
    """waiting: requests that wait (Lq); queue: waiting or served (L); waiting_probability: Erlang's C."""

    utilization: float
    waiting_probability: float
    waiting: float
    queue: float
    waiting_s: float
    response_s: float


def mmm(arrivals: float, service_rate: float, servers: int = 1) -> Queue:
    """arrivals and service_rate (of one server) in 1/s. ValueError where arrivals reach what m servers can do."""
    if not (arrivals > 0 and service_rate > 0 and servers >= 1 and arrivals < servers * service_rate):
        raise ValueError(
            f"{arrivals:g} arrivals/s at {servers} servers of {service_rate:g}/s each: a queue is stable only below "
            f"{servers * service_rate:g}/s, with rates above zero"
        )
    offered, utilization = arrivals / service_rate, arrivals / service_rate / servers
    blocked = 1.0  # Erlang's B by its recursion, which stays within 0..1 for any number of servers
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    waits = blocked / (1 - utilization * (1 - blocked))
    waiting = waits * utilization / (1 - utilization)
    waiting_s = waiting / arrivals
    return Queue(utilization, waits, waiting, waiting + offered, waiting_s, waiting_s + 1 / service_rate)
