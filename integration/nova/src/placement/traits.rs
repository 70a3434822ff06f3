//! Traits that Nova puts together from image properties, as far as os-traits 3.9 knows them.

/// Prefix of the traits and the ends that exist, by image property
/// (`request_filter.transform_image_metadata`). Traits of virtual IOMMUs are missing: Nova looks
/// for `COMPUTE_VIOMMU_INTEL` where os-traits has `COMPUTE_VIOMMU_MODEL_INTEL`.
pub(super) const OF_PROPERTIES: [(&str, &str, &[&str]); 7] = [
    ("hw_cdrom_bus", "COMPUTE_STORAGE_BUS", &BUSES),
    ("hw_disk_bus", "COMPUTE_STORAGE_BUS", &BUSES),
    (
        "hw_video_model",
        "COMPUTE_GRAPHICS_MODEL",
        &[
            "BOCHS", "CIRRUS", "GOP", "NONE", "QXL", "VGA", "VIRTIO", "VMVGA", "XEN",
        ],
    ),
    (
        "hw_vif_model",
        "COMPUTE_NET_VIF_MODEL",
        &[
            "E1000",
            "E1000E",
            "IGB",
            "LAN9118",
            "NE2K_PCI",
            "NETFRONT",
            "PCNET",
            "RTL8139",
            "SPAPR_VLAN",
            "SRIOV",
            "VIRTIO",
            "VMXNET",
            "VMXNET3",
        ],
    ),
    (
        "hw_architecture",
        "HW_ARCH",
        &[
            "AARCH64",
            "ALPHA",
            "ARMV6",
            "ARMV7",
            "ARMV7B",
            "CRIS",
            "I686",
            "IA64",
            "LM32",
            "M68K",
            "MICROBLAZE",
            "MICROBLAZEEL",
            "MIPS",
            "MIPS64",
            "MIPS64EL",
            "MIPSEL",
            "OPENRISC",
            "PARISC",
            "PARISC64",
            "PPC",
            "PPC64",
            "PPC64LE",
            "PPCEMB",
            "PPCLE",
            "S390",
            "S390X",
            "SH4",
            "SH4EB",
            "SPARC",
            "SPARC64",
            "UNICORE32",
            "X86_64",
            "XTENSA",
            "XTENSAEB",
        ],
    ),
    (
        "hw_emulation_architecture",
        "COMPUTE_ARCH",
        &["AARCH64", "MIPSEL", "PPC64LE", "RISCV64", "S390X", "X86_64"],
    ),
    ("hw_viommu_model", "COMPUTE_VIOMMU", &[]),
];

const BUSES: [&str; 9] = [
    "FDC", "IDE", "LXC", "SATA", "SCSI", "UML", "USB", "VIRTIO", "XEN",
];

/// Ends of the traits `COMPUTE_IMAGE_TYPE_…`.
pub(super) const IMAGE_TYPES: [&str; 11] = [
    "AKI", "AMI", "ARI", "ISO", "PLOOP", "QCOW2", "RAW", "VDI", "VHD", "VHDX", "VMDK",
];
