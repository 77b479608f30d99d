"""Squid's counters that must agree with the driver's."""

from loadframe.knowledge.metric import requests

AGREEMENTS = (requests("squid.requests", also=("squid.",)),)
