//! `compute_nodes.pci_stats` (`nova/objects/pci_device_pool.py`).
