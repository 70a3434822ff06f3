//! Which image properties Nova knows, and how it reads each (`nova/objects/image_meta.py`,
//! `ImageMetaProps.fields`).

/// How a property is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Text; numbers become text.
    Text,
    /// Whole number.
    Int,
    /// Anything: what does not read as true is false.
    Bool,
    /// One of some words, exactly.
    OneOf(&'static [&'static str]),
    /// Processor architecture, with old names.
    Architecture,
    /// Hypervisor type, with an old name.
    HvType,
    /// Virtual machine mode, with old names.
    VmMode,
    /// Operating system type, in any case.
    OsType,
    /// SCSI controller, in any case, with VMware's names.
    ScsiModel,
    /// Network card, in any case, with VMware's names.
    VifModel,
    /// Text of anything: Nova does not check that it is a UUID.
    Uuid,
    /// Conditions on a version.
    Version,
    /// A list of dicts of text.
    Dicts,
    /// From `hw_numa_cpus.0`, `.1`, and so on.
    NumaCpus,
    /// From `hw_numa_mem.0`, `.1`, and so on.
    NumaMem,
    /// From keys `trait:NAME` that are `required`.
    Traits,
}

const BUS: Kind = Kind::OneOf(&[
    "fdc", "ide", "sata", "scsi", "usb", "virtio", "xen", "lxc", "uml",
]);

/// Properties in Nova's order, which is the order in which they are read.
pub(super) const FIELDS: [(&str, Kind); 86] = [
    ("hw_architecture", Kind::Architecture),
    ("hw_emulation_architecture", Kind::Architecture),
    ("hw_auto_disk_config", Kind::Text),
    ("hw_boot_menu", Kind::Bool),
    ("hw_cdrom_bus", BUS),
    ("hw_cpu_cores", Kind::Int),
    ("hw_cpu_sockets", Kind::Int),
    ("hw_cpu_max_cores", Kind::Int),
    ("hw_cpu_max_sockets", Kind::Int),
    ("hw_cpu_max_threads", Kind::Int),
    (
        "hw_cpu_policy",
        Kind::OneOf(&["dedicated", "shared", "mixed"]),
    ),
    (
        "hw_cpu_thread_policy",
        Kind::OneOf(&["prefer", "isolate", "require"]),
    ),
    ("hw_cpu_realtime_mask", Kind::Text),
    ("hw_cpu_threads", Kind::Int),
    ("hw_device_id", Kind::Int),
    ("hw_disk_bus", BUS),
    ("hw_disk_type", Kind::Text),
    ("hw_floppy_bus", BUS),
    ("hw_firmware_type", Kind::OneOf(&["uefi", "bios"])),
    ("hw_firmware_stateless", Kind::Bool),
    ("hw_input_bus", Kind::OneOf(&["usb", "virtio"])),
    ("hw_ipxe_boot", Kind::Bool),
    ("hw_locked_memory", Kind::Bool),
    ("hw_machine_type", Kind::Text),
    ("hw_mem_encryption", Kind::Bool),
    (
        "hw_mem_encryption_model",
        Kind::OneOf(&["amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx"]),
    ),
    ("hw_mem_page_size", Kind::Text),
    ("hw_numa_nodes", Kind::Int),
    ("hw_numa_cpus", Kind::NumaCpus),
    ("hw_numa_mem", Kind::NumaMem),
    (
        "hw_pci_numa_affinity_policy",
        Kind::OneOf(&["required", "legacy", "preferred", "socket"]),
    ),
    ("hw_pointer_model", Kind::OneOf(&["usbtablet"])),
    ("hw_pmu", Kind::Bool),
    ("hw_qemu_guest_agent", Kind::Bool),
    ("hw_rescue_bus", BUS),
    (
        "hw_rescue_device",
        Kind::OneOf(&["cdrom", "disk", "floppy", "fs", "lun"]),
    ),
    ("hw_rng_model", Kind::OneOf(&["virtio"])),
    ("hw_time_hpet", Kind::Bool),
    ("hw_serial_port_count", Kind::Int),
    ("hw_scsi_model", Kind::ScsiModel),
    (
        "hw_video_model",
        Kind::OneOf(&[
            "cirrus", "qxl", "vga", "vmvga", "xen", "virtio", "gop", "none", "bochs",
        ]),
    ),
    ("hw_video_ram", Kind::Int),
    ("hw_vif_model", Kind::VifModel),
    (
        "hw_viommu_model",
        Kind::OneOf(&["intel", "smmuv3", "virtio", "auto"]),
    ),
    ("hw_vm_mode", Kind::VmMode),
    (
        "hw_watchdog_action",
        Kind::OneOf(&["none", "pause", "poweroff", "reset", "disabled"]),
    ),
    ("hw_vif_multiqueue_enabled", Kind::Bool),
    ("hw_tpm_model", Kind::OneOf(&["tpm-tis", "tpm-crb"])),
    ("hw_tpm_version", Kind::OneOf(&["1.2", "2.0"])),
    ("hw_ephemeral_encryption", Kind::Bool),
    (
        "hw_ephemeral_encryption_format",
        Kind::OneOf(&["plain", "luks", "luksv2"]),
    ),
    ("hw_ephemeral_encryption_secret_uuid", Kind::Uuid),
    ("hw_virtio_packed_ring", Kind::Bool),
    (
        "hw_maxphysaddr_mode",
        Kind::OneOf(&["passthrough", "emulate"]),
    ),
    ("hw_maxphysaddr_bits", Kind::Int),
    (
        "hw_sound_model",
        Kind::OneOf(&[
            "sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio",
        ]),
    ),
    (
        "hw_usb_model",
        Kind::OneOf(&["none", "nec-xhci", "qemu-xhci"]),
    ),
    ("hw_redirected_usb_ports", Kind::Int),
    ("img_bittorrent", Kind::Bool),
    ("img_bdm_v2", Kind::Bool),
    ("img_block_device_mapping", Kind::Dicts),
    ("img_cache_in_nova", Kind::Bool),
    ("img_compression_level", Kind::Int),
    ("img_hv_requested_version", Kind::Version),
    ("img_hv_type", Kind::HvType),
    ("img_config_drive", Kind::OneOf(&["optional", "mandatory"])),
    ("img_linked_clone", Kind::Bool),
    ("img_mappings", Kind::Dicts),
    ("img_owner_id", Kind::Text),
    ("img_root_device_name", Kind::Text),
    ("img_use_agent", Kind::Bool),
    ("img_version", Kind::Int),
    ("img_signature", Kind::Text),
    (
        "img_signature_hash_method",
        Kind::OneOf(&["SHA-224", "SHA-256", "SHA-384", "SHA-512"]),
    ),
    ("img_signature_certificate_uuid", Kind::Uuid),
    (
        "img_signature_key_type",
        Kind::OneOf(&[
            "DSA",
            "ECC_SECP384R1",
            "ECC_SECP521R1",
            "ECC_SECT409K1",
            "ECC_SECT409R1",
            "ECC_SECT571K1",
            "ECC_SECT571R1",
            "RSA-PSS",
        ]),
    ),
    ("img_hide_hypervisor_id", Kind::Bool),
    ("os_admin_user", Kind::Text),
    ("os_command_line", Kind::Text),
    ("os_distro", Kind::Text),
    ("os_require_quiesce", Kind::Bool),
    (
        "os_secure_boot",
        Kind::OneOf(&["required", "disabled", "optional"]),
    ),
    ("os_skip_agent_inject_files_at_boot", Kind::Bool),
    ("os_skip_agent_inject_ssh", Kind::Bool),
    ("os_type", Kind::OsType),
    ("traits_required", Kind::Traits),
];

/// Old names, in Nova's order, with the names that took their place. Old names are read first, so
/// the new one wins.
pub(super) const LEGACY: [(&str, &str); 22] = [
    ("architecture", "hw_architecture"),
    ("owner_id", "img_owner_id"),
    ("vmware_disktype", "hw_disk_type"),
    ("vmware_image_version", "img_version"),
    ("vmware_ostype", "os_distro"),
    ("auto_disk_config", "hw_auto_disk_config"),
    ("ipxe_boot", "hw_ipxe_boot"),
    ("xenapi_device_id", "hw_device_id"),
    ("xenapi_image_compression_level", "img_compression_level"),
    ("vmware_linked_clone", "img_linked_clone"),
    ("xenapi_use_agent", "img_use_agent"),
    ("xenapi_skip_agent_inject_ssh", "os_skip_agent_inject_ssh"),
    (
        "xenapi_skip_agent_inject_files_at_boot",
        "os_skip_agent_inject_files_at_boot",
    ),
    ("cache_in_nova", "img_cache_in_nova"),
    ("vm_mode", "hw_vm_mode"),
    ("bittorrent", "img_bittorrent"),
    ("mappings", "img_mappings"),
    ("block_device_mapping", "img_block_device_mapping"),
    ("bdm_v2", "img_bdm_v2"),
    ("root_device_name", "img_root_device_name"),
    ("hypervisor_version_requires", "img_hv_requested_version"),
    ("hypervisor_type", "img_hv_type"),
];

pub(super) const ARCHITECTURES: [&str; 34] = [
    "alpha",
    "armv6",
    "armv7l",
    "armv7b",
    "aarch64",
    "cris",
    "i686",
    "ia64",
    "lm32",
    "m68k",
    "microblaze",
    "microblazeel",
    "mips",
    "mipsel",
    "mips64",
    "mips64el",
    "openrisc",
    "parisc",
    "parisc64",
    "ppc",
    "ppcle",
    "ppc64",
    "ppc64le",
    "ppcemb",
    "s390",
    "s390x",
    "sh4",
    "sh4eb",
    "sparc",
    "sparc64",
    "unicore32",
    "x86_64",
    "xtensa",
    "xtensaeb",
];

/// Hypervisor types.
pub(super) const HV_TYPES: [&str; 22] = [
    "baremetal",
    "bhyve",
    "docker",
    "fake",
    "hyperv",
    "ironic",
    "kqemu",
    "kvm",
    "lxc",
    "lxd",
    "openvz",
    "parallels",
    "phyp",
    "qemu",
    "test",
    "uml",
    "vbox",
    "vz",
    "vmware",
    "xen",
    "zvm",
    "prsm",
];

/// Virtual machine modes.
pub(super) const VM_MODES: [&str; 4] = ["hvm", "xen", "uml", "exe"];

/// SCSI controllers.
pub(super) const SCSI_MODELS: [&str; 7] = [
    "buslogic",
    "ibmvscsi",
    "lsilogic",
    "lsisas1068",
    "lsisas1078",
    "virtio-scsi",
    "vmpvscsi",
];

/// Network cards.
pub(super) const VIF_MODELS: [&str; 13] = [
    "virtio",
    "ne2k_pci",
    "pcnet",
    "rtl8139",
    "e1000",
    "e1000e",
    "netfront",
    "spapr-vlan",
    "lan9118",
    "sriov",
    "vmxnet",
    "vmxnet3",
    "igb",
];
