//! The agent's keys of `[driver]`.

use super::Key;
use super::Type::{List, Number, Path, Switch, Table, Text, Whole, Words};

const STORAGE: &str = "[driver.libvirt.storage]\nname = \"nfs-1\"\ndir = \"/mnt/nfs-1\"\n";
const SIMULATED_STORAGE: &str =
    "[driver.simulated.storage]\nname = \"nfs-1\"\ndir = \"/mnt/nfs-1\"\n";
const PEER: &str = "[[driver.libvirt.peers]]\nuri = \"qemu+ssh://compute-2/system\"\n";
const HOUR: f64 = 3600.0;

/// The keys.
pub(super) const KEYS: &[Key] = &[
    Key::new("driver.kind", Words(&["libvirt", "nova", "simulated"]), "\"simulated\"", "\"libvirt\"", "Which hypervisor the agent drives. libvirt: QEMU's virtual machines on this host. nova: Nova's API, beside nova-compute or for many hosts. simulated: a stand-in in a file, for trying things out. The settings of each are in its own table; those of the others have no effect."),
    Key::new("driver.libvirt.uri", Text, "\"qemu:///system\"", "\"qemu:///session\"", "libvirt's name for the connection."),
    Key::new("driver.libvirt.virsh", Path, "\"virsh\"", "\"/usr/bin/virsh\"", "The program that speaks with libvirt."),
    Key::new("driver.libvirt.instances_dir", Path, "\"/var/lib/ebbtide/instances\"", "\"/mnt/nfs-1/instances\"", "Where disks and what the agent notes about its servers are: one directory each. An absolute path, on storage that all hosts share if servers are to be moved between hosts."),
    Key::new("driver.libvirt.run_dir", Path, "\"/run/ebbtide-agent\"", "\"/run/ebbtide\"", "Where the sockets of guests are. An absolute, short path of this host alone, never on shared storage."),
    Key::new("driver.libvirt.template", Path, "", "\"/etc/ebbtide/domain.xml\"", "How new servers are defined: a file with libvirt's domain XML and placeholders. Not set: a built-in one."),
    Key::new("driver.libvirt.domain_type", Words(&["kvm", "qemu"]), "\"kvm\"", "\"qemu\"", "kvm, or qemu for hosts without hardware virtualisation."),
    Key::new("driver.libvirt.image", Path, "", "\"/var/lib/ebbtide/images/debian.raw\"", "From what the disk of a new server is made; not set: the disk is empty."),
    Key::new("driver.libvirt.images", Table, "", "{ \"m1.small\" = \"/var/lib/ebbtide/images/small.raw\" }", "The same for single flavors."),
    Key::new("driver.libvirt.disk_format", Words(&["raw", "qcow2"]), "\"raw\"", "\"qcow2\"", "raw copies the image; qcow2 lays a new file over it (with qemu-img), which takes no time and little room."),
    Key::new("driver.libvirt.inventory", Table, "", "{ VCPU = { allocation_ratio = 4.0 } }", "By resource class: where it differs from what the hypervisor says."),
    Key::new("driver.libvirt.inventory.*.total", Whole, "", "64", "All there is."),
    Key::new("driver.libvirt.inventory.*.reserved", Whole, "", "2", "Kept back for the host itself."),
    Key::new("driver.libvirt.inventory.*.allocation_ratio", Number, "", "4.0", "How often what is left is sold."),
    Key::new("driver.libvirt.traits", List, "", "[\"CUSTOM_SSD\"]", "What the host is, as Placement's traits."),
    Key::new("driver.libvirt.shutdown_seconds", Number, "20.0", "60.0", "How long a guest may take to shut down after its power button was pressed; then it is destroyed.").unit("seconds").range(0.0, HOUR),
    Key::new("driver.libvirt.command_seconds", Number, "30.0", "60.0", "How long a command of virsh that should be quick may take.").unit("seconds").range(0.0, HOUR),
    Key::new("driver.libvirt.notice.channel", Switch, "true", "false", "Tell guests of their end on the virtio channel org.ebbtide.notice.0."),
    Key::new("driver.libvirt.notice.agent_file", Text, "\"/run/ebbtide-notice\"", "\"\"", "The file that the guest agent writes in the guest; empty if it is not to be asked."),
    Key::new("driver.libvirt.metadata.interface", Switch, "true", "false", "Serve metadata on the guest's own network interface as well as on the guest's socket in run_dir."),
    Key::new("driver.libvirt.metadata.port", Whole, "80", "8080", "Where on that interface.").unit("port"),
    Key::new("driver.libvirt.storage.name", Text, "", "\"nfs-1\"", "The name of the storage that the host shares with others, where preemptible servers are kept; the same on every host that mounts it.").required().with(STORAGE),
    Key::new("driver.libvirt.storage.dir", Path, "", "\"/mnt/nfs-1\"", "Where it is mounted; an absolute path, the same on every host.").required().with(STORAGE),
    Key::new("driver.libvirt.peers[].uri", Text, "", "\"qemu+ssh://compute-2/system\"", "A host to which servers may be moved, in the order of trial: libvirt's name for the connection, as seen from here.").required().with(PEER),
    Key::new("driver.libvirt.peers[].migrate_uri", Text, "", "\"tcp://192.0.2.12\"", "Where the memory is sent; not set: libvirt chooses.").with(PEER),
    Key::new("driver.libvirt.peers[].run_dir", Path, "", "\"/run/ebbtide\"", "The other host's run_dir, if it differs.").with(PEER),
    Key::new("driver.libvirt.peers[].memory_mb", Whole, "", "16384", "How much of its memory servers may take; all of it if nothing is said.").unit("MiB").with(PEER),
    Key::new("driver.libvirt.peers[].options", List, "", "[\"--copy-storage-all\"]", "More options of virsh migrate.").with(PEER),
    Key::new("driver.nova.hosts", List, "", "[\"*\"]", "The hosts for which this one process speaks, by the names of their nova-compute services, or [\"*\"] for all. Not set: only for host."),
    Key::new("driver.nova.auth", Table, "", "{ auth_type = \"password\", auth_url = \"http://keystone:5000/v3\", username = \"ebbtide\", password = \"PASSWORD\", user_domain_name = \"Default\", project_name = \"service\", project_domain_name = \"Default\" }", "The credentials, by keystoneauth's names.").secret(),
    Key::new("driver.nova.compute", Table, "", "{ region_name = \"RegionOne\", endpoint_override = \"http://nova:8774/v2.1\" }", "How Nova's API is found: region_name, valid_interfaces, endpoint_override, timeout, connect_retries, connect_retry_delay."),
    Key::new("driver.nova.nova_conf", Path, "", "\"/etc/nova/nova.conf\"", "Take credentials and region from this file where auth is empty."),
    Key::new("driver.nova.nova_conf_section", Text, "\"placement\"", "\"neutron\"", "The section of it that has the credentials of an administrator."),
    Key::new("driver.nova.refresh_seconds", Number, "10.0", "5.0", "Time between two lists of servers, one list for all hosts.").unit("seconds").range(0.05, HOUR),
    Key::new("driver.nova.full_list_seconds", Number, "300.0", "600.0", "Time between two whole lists; those in between say only what has changed.").unit("seconds").range(1.0, 86_400.0),
    Key::new("driver.nova.watch_seconds", Number, "2.0", "1.0", "Time between two looks at a server that has its notice, for an early release.").unit("seconds").range(0.05, 600.0),
    Key::new("driver.nova.poll_seconds", Number, "0.5", "0.2", "Time between two looks at a server that is being ended.").unit("seconds").range(0.005, 60.0),
    Key::new("driver.nova.hosts_seconds", Number, "60.0", "30.0", "Time between two lists of the hosts and what they have.").unit("seconds").range(1.0, 86_400.0),
    Key::new("driver.nova.notice_reason", Text, "\"the capacity is needed for a normal request\"", "\"make room\"", "What a notice gives as its reason."),
    Key::new("driver.simulated.inventory", Table, "", "{ VCPU = 8, MEMORY_MB = 16384, DISK_GB = 100 }", "What the host has of each resource class: a plain total, or a table with total, reserved and allocation_ratio.").required(),
    Key::new("driver.simulated.traits", List, "", "[\"CUSTOM_SSD\"]", "What the host is, as Placement's traits."),
    Key::new("driver.simulated.dir", Path, "", "\"/var/lib/ebbtide/simulated\"", "Where the hypervisor keeps its state; not set: in state_dir."),
    Key::new("driver.simulated.metadata_dir", Path, "", "\"/run/ebbtide-agent\"", "Where each running guest has a socket with its metadata; not set: nowhere. At most 61 bytes long."),
    Key::new("driver.simulated.storage.name", Text, "", "\"nfs-1\"", "As driver.libvirt.storage.name.").required().with(SIMULATED_STORAGE),
    Key::new("driver.simulated.storage.dir", Path, "", "\"/mnt/nfs-1\"", "As driver.libvirt.storage.dir.").required().with(SIMULATED_STORAGE),
    Key::new("driver.simulated.start_seconds", Number, "0.3", "0.0", "Time to start a server.").unit("seconds").range(0.0, HOUR),
    Key::new("driver.simulated.notice_seconds", Number, "0.05", "0.0", "Time to reach a guest with its notice.").unit("seconds").range(0.0, HOUR),
    Key::new("driver.simulated.terminate_seconds", Number, "0.2", "0.0", "Time to terminate a server.").unit("seconds").range(0.0, HOUR),
    Key::new("driver.simulated.stop_seconds", Number, "0.5", "0.0", "Time to stop a server.").unit("seconds").range(0.0, HOUR),
    Key::new("driver.simulated.hibernate_seconds", Number, "1.0", "0.0", "Time to hibernate a server.").unit("seconds").range(0.0, HOUR),
    Key::new("driver.simulated.delete_seconds", Number, "0.2", "0.0", "Time to delete a server.").unit("seconds").range(0.0, HOUR),
];
