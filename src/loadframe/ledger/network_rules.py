"""Limits of the network."""

from __future__ import annotations

from functools import partial

from loadframe.knowledge.limit import LimitRule
from loadframe.ledger.machine_rules import CEILING, IP, USE

NET = "Linux, Documentation/admin-guide/sysctl/net.rst"

_network = partial(LimitRule, layer="network", now_only=CEILING)

NETWORK: tuple[LimitRule, ...] = (
    _network(
        id="network.syn_queue",
        title="half-open connections",
        use="system.network.syn_received",
        ceiling="system.network.syn_backlog",
        source=f"{IP}: tcp_max_syn_backlog; TCPReqQFullDrop and TCPReqQFullDoCookies; near: 80 %, our choice",
        thrash="system.network.syn_drops",
        chain=("kernel.somaxconn",),
        near=0.8,
        on_harm="reached",
    ),
    LimitRule(
        id="network.local_ports",
        title="local ports for connections to one destination",
        layer="network",
        use="system.network.local_ports",
        ceiling="system.network.local_ports.limit",
        loud=True,
        source=f"{IP}: ip_local_port_range; TIME_WAIT keeps a port for 60 s; near: 80 %, our choice",
        errors="workload.errors",
        near=0.8,
    ),
    _network(
        id="network.new_connections",
        title="connections opened per second, if all went to one destination",
        use="system.network.connections_opened",
        ceiling="system.network.local_ports.per_second",
        unit="1/s",
        loud=True,
        source=f"{IP}: ip_local_port_range, over the 60 s for which TIME_WAIT keeps a port (TCP_TIMEWAIT_LEN; "
        "tcp_tw_reuse shortens it); ActiveOpens in /proc/net/snmp; near: all",
        chain=("network.local_ports",),
        near=1.0,
        pressure=True,
    ),
    _network(
        id="network.time_wait",
        title="sockets in TIME_WAIT",
        use="system.network.time_wait",
        ceiling="system.network.time_wait.limit",
        source=f"{IP}: tcp_max_tw_buckets; TCPTimeWaitOverflow; near: 80 %, our choice",
        thrash="system.network.time_wait_overflows",
        near=0.8,
        on_harm="reached",
    ),
    _network(
        id="network.tcp_memory",
        title="memory of all TCP sockets",
        use="system.network.tcp_memory",
        ceiling="system.network.tcp_memory.limit",
        unit="bytes",
        source=f"{IP}: the third number of tcp_mem; TCPMemoryPressures; near: the second number, by default 2/3",
        thrash="system.network.tcp_memory_pressures",
        near=2 / 3,
    ),
    _network(
        id="network.conntrack",
        title="connections that the firewall tracks",
        use="system.network.conntrack",
        ceiling="system.network.conntrack.limit",
        source="Linux, Documentation/networking/nf_conntrack-sysctl.rst: packets of further ones are dropped; near: "
        "80 %, our choice",
        near=0.8,
    ),
    _network(
        id="network.backlog",
        title="received packets that wait for one CPU",
        use="system.network.backlog",
        ceiling="system.network.backlog.limit",
        source=f"{NET}: netdev_max_backlog; the second column of softnet_stat counts drops; near: 80 %, our choice",
        thrash="system.network.backlog_drops",
        near=0.8,
        on_harm="reached",
    ),
    _network(
        id="network.packets_per_round",
        title="packets received in one round",
        use="system.network.packets_per_round",
        ceiling="system.network.packets_per_round.limit",
        source=f"{NET}: netdev_budget and netdev_budget_usecs; the third column of softnet_stat counts the rounds that "
        "either of them cut short; near: 80 %, our choice, or any such round",
        thrash="system.network.squeezes",
        near=0.8,
        on_harm="near",
    ),
    LimitRule(
        id="network.link",
        title="the network link",
        layer="hardware",
        use="system.network.link",
        ceiling="system.network.link.limit",
        unit="bytes/s",
        source=f"/sys/class/net/*/speed and /proc/net/dev; {USE}: throughput / max; near: 90 %, our choice",
        near=0.9,
        now_only="the speed of a link is not recorded",
    ),
)
