"""Varnish's counters that must agree with the driver's."""

from loadframe.knowledge.metric import requests

AGREEMENTS = (requests("varnish.requests", also=("varnish.",)),)
