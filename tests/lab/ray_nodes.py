"""Two ray nodes on this machine for a test: prints the address, kills one when told to, ends with its input."""

import os
import sys

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
from ray.cluster_utils import Cluster

SMALL = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}

# A node that is gone is known after seconds, not after half a minute.
QUICK = {"health_check_period_ms": 1000, "health_check_timeout_ms": 3000, "health_check_failure_threshold": 3}

cluster = Cluster()
cluster.add_node(**SMALL, _system_config=QUICK)
second = cluster.add_node(**SMALL, num_gpus=1)  # a number to share out; nobody looks for a device
cluster.wait_for_nodes()
print(cluster.address, flush=True)
for line in sys.stdin:
    if line.strip() == "kill":
        cluster.remove_node(second, allow_graceful=False)
cluster.shutdown()
