"""One measurement of one system, in that system's interpreter: `python -m bench.peers.driver NAME MEASUREMENT OPTIONS`.

Started by the runner, with the database, the ledger and the log in the environment and the options as JSON. The last
line of its output is the figures as JSON, or `{"error": ...}`.
"""

import contextlib
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from bench.peers import install, measure
from bench.peers.adapter import Adapter
from bench.peers.crew import Unfinished
from bench.peers.registry import PEERS

LOG = "BENCH_LOG"
MEASUREMENTS = {"enqueue": measure.enqueue, "drain": measure.drain, "latency": measure.latency}


def main() -> None:
    """Measure, and print the figures."""
    name, measurement, options = sys.argv[1:]
    peer = PEERS[name]
    adapter: Adapter = importlib.import_module(f"bench.peers.{name}").ADAPTER()
    try:
        figures: dict[str, Any] = MEASUREMENTS[measurement](adapter, peer, json.loads(options), Path(os.environ[LOG]))
    except Unfinished as error:
        figures = {"error": str(error)}
    except Exception as error:  # noqa: BLE001  whatever a system raises is its result
        traceback.print_exc()
        figures = {"error": f"{type(error).__name__}: {error}".partition("\n")[0]}
    with contextlib.suppress(Exception):  # the figures stand, however the system takes its leave
        adapter.close()
    print(json.dumps(figures | {"version": install.version(peer)}), flush=True)


if __name__ == "__main__":
    main()
