"""What Varnish counts."""

from pathlib import Path

from loadframe.knowledge.metric import requests

ROWS = Path(__file__).with_name("metrics.txt").read_text(encoding="utf-8", errors="strict")
"""name | unit | what."""

AGREEMENTS = (requests("varnish.requests", also=("varnish.",)),)
