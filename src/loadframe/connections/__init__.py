"""How servers are reached, for targets and workloads alike: addresses, sockets, clients, bounds on what they answer."""
