"""Rows of compute_nodes, and the host states that Nova 34 makes of them.

    VENV/bin/python compute_rows.py | gzip -9n > ../tests/vectors/compute_rows.jsonl.gz

with a VENV that has nova==34.0.0. Each line: {"row": columns as the database gives them, "state":
fields of HostState} or, where Nova raises, {"row": ..., "error": class}. The rows are made from a
seed, so that a second run gives the same file.
"""
import datetime
import json
import random
import sys

from nova import context, objects
from nova.db.main import api as db
from nova.scheduler import host_manager
import nova.conf

objects.register_all()
nova.conf.CONF([], project="nova", default_config_files=[])
db.compute_node_update = lambda *a, **k: None
CTX = context.get_admin_context()
RNG = random.Random(7)


def primitive(name, version, data):
    return {"nova_object.name": name, "nova_object.namespace": "nova",
            "nova_object.version": version, "nova_object.data": data}


def numa_cell(number, version="1.5", **more):
    data = {"id": number, "cpuset": [0, 1, 2], "pcpuset": [3, 4, 5], "memory": 2048, "cpu_usage": 1,
            "memory_usage": 512, "pinned_cpus": [3], "siblings": [[0, 1], [2, 3]], "socket": 0,
            "mempages": [primitive("NUMAPagesTopology", "1.1",
                                   {"size_kb": 2048, "total": 512, "used": 3, "reserved": 1})],
            "network_metadata": primitive("NetworkMetadata", "1.0", {"physnets": ["p1"], "tunneled": True})}
    data.update(more)
    return primitive("NUMACell", version, data)


def topology(*cells, version="1.2"):
    return json.dumps(primitive("NUMATopology", version, {"cells": list(cells)}))


def pools(*data, version="1.1"):
    return json.dumps(primitive("PciDevicePoolList", version, {
        "objects": [primitive("PciDevicePool", "1.1", d) for d in data]}))


POOL = {"vendor_id": "8086", "product_id": "1520", "numa_node": 0, "count": 3,
        "tags": {"dev_type": "type-VF", "physical_network": None}}
BASE = dict(
    created_at="2026-01-01 00:00:00", updated_at="2026-11-20 10:11:12", deleted_at=None, deleted=0,
    service_id=None, vcpus=8, memory_mb=16000, local_gb=160, vcpus_used=3, memory_mb_used=4096,
    local_gb_used=20, hypervisor_type="QEMU", hypervisor_version=8002000, free_ram_mb=11904, free_disk_gb=140,
    current_workload=0, running_vms=1, cpu_info='{"arch": "x86_64"}', disk_available_least=133,
    host_ip="10.0.0.1", supported_instances='[["x86_64", "kvm", "hvm"], ["i686", "qemu", "hvm"]]', metrics="[]",
    pci_stats=None, extra_resources=None, stats='{"num_instances": "1", "io_workload": "0", "failed_builds": "0"}',
    numa_topology=None, ram_allocation_ratio=1.0, cpu_allocation_ratio=4.0, disk_allocation_ratio=1.0, mapped=1)

VARIANTS = {
    "hypervisor_type": ["ironic", "", "VMware vCenter Server"],
    "free_ram_mb": [None, -8000, 0],
    "free_disk_gb": [None, -5, 0],
    "disk_available_least": [None, 500, -3, 0],
    "host_ip": [None, "::1", "2001:DB8::0001", "no address"],
    "cpu_info": ["", "{}", "no json"],
    "supported_instances": [None, "", "[]", '[["X86_64", "KVM", "HVM"]]', '[["amd64", "qemu", "xen"]]',
                            '[["x86_64", "kvm"]]', '[["vax", "kvm", "hvm"]]', '[[null, "kvm", "hvm"]]', "{}", "no json",
                            '[["x86_64", "lxd", "exe", "more"]]', '["x86_64"]', "7", '[["ppc64le","baremetal","baremetal"]]'],
    "stats": [None, "", "{}", '{"num_instances": 3, "io_workload": " 4 "}', '{"num_instances": "x"}',
              '{"num_instances": null}', '{"failed_builds": "7", "other": null, "f": 1.5}', "[]", "null", "no json",
              '{"num_instances": "1_0"}', '{"io_workload": true}', '{"num_instances": "-2"}', '{"a": {}}'],
    "metrics": [None, "", "[]", "null", "no json", "{}",
                '[{"name": "cpu.percent", "value": 0.29, "timestamp": "2026-01-01T00:00:00", "source": "libvirt"}]',
                '[{"name": "cpu.frequency", "value": 2400, "timestamp": "2026-01-01T00:00:00", "source": "x"}]',
                '[{"name": "unknown", "value": 1, "timestamp": "2026-01-01T00:00:00", "source": "x"}]',
                '[{"name": "cpu.percent", "value": null, "timestamp": "2026-01-01T00:00:00", "source": "x"}]',
                '[{"name": "cpu.percent", "value": 1, "timestamp": "yesterday", "source": "x"}]', '[{"value": 1}]'],
    "numa_topology": ["", topology(numa_cell(0)), topology(numa_cell(0), numa_cell(1, socket=None)),
                      topology(numa_cell(0, version="1.4"), version="1.1"), topology(numa_cell(0), version="1.3"),
                      topology(numa_cell(0, version="2.0")), topology(),
                      topology(numa_cell(0, cpuset=["1", 2], cpu_usage=None, memory_usage="7")),
                      topology(numa_cell(0, memory="x")), topology(numa_cell(0, siblings=[[]], mempages=[])),
                      "no json", '{"nova_object.name": "NUMATopology"}', "[]", "7",
                      json.dumps({"cells": [{"id": 0, "cpus": "0-3,^2", "cpu_usage": 1, "mem": {"total": 512, "used": 7}},
                                            {"id": 1}]}),
                      json.dumps({"cells": [{"cpus": "0-3"}]}), json.dumps({"cells": [{"id": 0, "cpus": "x"}]}), "{}",
                      json.dumps({**primitive("NUMATopology", "1.2", {"cells": []}), "nova_object.namespace": "other"})],
    "pci_stats": ["", "null", "[]", "{}", "no json", pools(), pools(POOL), pools({**POOL, "tags": {}}, POOL),
                  pools(POOL, version="1.2"), pools({**POOL, "count": "4", "numa_node": None}),
                  pools({**POOL, "count": None}), pools({**POOL, "tags": {"a": {}}}),
                  json.dumps([{"vendor_id": "1", "product_id": "2", "count": 1, "physical_network": "p"},
                              {"vendor_id": "1", "product_id": "2", "count": 1}]),
                  json.dumps({"vendor_id": "1", "product_id": "2", "count": 1}), json.dumps([{"vendor_id": "1"}]),
                  json.dumps({"vendor_id": "1"}), "7", '"text"'],
    "ram_allocation_ratio": [None, 0.0, 1.5, 0.9, 0.123457],
    "cpu_allocation_ratio": [None, 0.0, 16.0, 0.3],
    "disk_allocation_ratio": [None, 0.0, 2.5],
    "vcpus_used": [12, 0], "local_gb_used": [0, 999], "updated_at": [None, "2026-01-02 03:04:05"],
}


def numa(topology):
    if topology is None:
        return None

    def part(cell, name, read=lambda v: v, absent=None):
        return read(getattr(cell, name)) if cell.obj_attr_is_set(name) else absent
    return [{
        "id": c.id, "cpuset": sorted(part(c, "cpuset", absent=())), "pcpuset": sorted(part(c, "pcpuset", absent=())),
        "memory": part(c, "memory", absent=0), "cpu_usage": part(c, "cpu_usage", absent=0),
        "memory_usage": part(c, "memory_usage", absent=0), "pinned_cpus": sorted(part(c, "pinned_cpus", absent=())),
        "siblings": [sorted(s) for s in part(c, "siblings", absent=())], "socket": part(c, "socket"),
        "mempages": [[p.size_kb, p.total, p.used, p.reserved] for p in part(c, "mempages", absent=())],
        "networks": part(c, "network_metadata", lambda n: [sorted(n.physnets), n.tunneled]),
    } for c in (topology.cells if topology.obj_attr_is_set("cells") else [])]


def state(row):
    compute = objects.ComputeNode._from_db_object(CTX, objects.ComputeNode(), row)
    s = host_manager.HostState(compute.host, compute.hypervisor_hostname, "cell")
    s.update(compute=compute)
    plain = ("host nodename uuid free_ram_mb total_usable_ram_mb free_disk_mb total_usable_disk_gb disk_mb_used vcpus_total "
             "vcpus_used cpu_allocation_ratio ram_allocation_ratio disk_allocation_ratio hypervisor_type "
             "hypervisor_version cpu_info supported_instances num_instances num_io_ops failed_builds").split()
    out = {name: getattr(s, name) for name in plain}
    out["host_ip"] = None if s.host_ip is None else str(s.host_ip)
    out["stats"] = getattr(s, "stats", None)
    out["metrics"] = None if s.metrics is None else [
        [m.name, m.value if m.obj_attr_is_set("value") else None] for m in s.metrics]
    out["numa_topology"] = numa(s.numa_topology)
    out["pci_pools"] = None if s.pci_stats is None else s.pci_stats.pools
    out["updated"] = None if s.updated is None else int(s.updated.timestamp())
    return out


def time(text):
    return text and datetime.datetime.fromisoformat(text)


def rows():
    yield {}
    for name, values in VARIANTS.items():
        for value in values:
            yield {name: value}
    for _ in range(300):
        yield {name: RNG.choice(values) for name, values in VARIANTS.items() if RNG.random() < 0.12}


for number, change in enumerate(rows(), 1):
    row = dict(BASE, **change)
    row.update(id=number, uuid="00000000-0000-4000-8000-%012d" % number,
               host="compute%d" % number, hypervisor_hostname="node%d" % number)
    read = dict(row, **{n: time(row[n]) for n in ("created_at", "updated_at", "deleted_at")})
    try:
        result = {"row": row, "state": state(read)}
    except Exception as error:
        result = {"row": row, "error": type(error).__name__}
    json.dump(result, sys.stdout, sort_keys=True)
    print()
