"""Change one thing of a service that runs: put.py URL"""

from __future__ import annotations

import sys
import urllib.request

with urllib.request.urlopen(urllib.request.Request(sys.argv[1], method="PUT"), timeout=5) as answer:
    sys.stdout.write(answer.read().decode())
