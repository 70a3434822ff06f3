//! `compute_nodes.numa_topology` (`nova/objects/numa.py`).
