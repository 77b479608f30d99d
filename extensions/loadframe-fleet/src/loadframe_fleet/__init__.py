"""Many hosts: the fleet file, an agent on each host, and steps and trials over them (docs/fleet.md)."""
