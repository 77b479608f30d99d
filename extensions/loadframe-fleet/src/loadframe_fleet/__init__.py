"""Many hosts: the fleet file, an agent on each host, and the checks before they are loaded. A coordinator starts one
agent per host, by the user's own SSH client or another command, and speaks to it through that connection alone: an
agent opens no port, except for the seconds in which a link between two hosts is measured."""
