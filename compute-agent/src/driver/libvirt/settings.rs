//! The table `driver.libvirt` of the configuration.

use super::template::Template;
use crate::driver::storage::StorageSettings;
use crate::error::AgentError;
use ebbtide_model::settings::check_ranges;
use ebbtide_model::{Inventory, ResourceClass, Trait, toml_text};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// More than any host has of anything; for checking corrections of what is not known yet.
const MOST: u64 = i32::MAX as u64;

/// Longest time limit that may be configured: an hour is beyond every time limit of the agent.
const MAX_SECONDS: f64 = 3_600.0;

/// `sun_path` of Linux has 108 bytes with its end; a guest's sockets are `run_dir`/UUID`.metadata`
/// and a shorter one.
const MAX_RUN_DIR: usize = 108 - 1 - 1 - 36 - 9;

ebbtide_model::settings! {
    /// How the hypervisor is reached and how its guests are made.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct LibvirtSettings: Default {
        /// libvirt's name for the connection.
        pub uri: String = "qemu:///system".to_owned() => key("qemu:///session");
        /// The program that speaks with libvirt.
        pub virsh: PathBuf = PathBuf::from("virsh") => key("/usr/bin/virsh");
        /// Where disks and what the agent notes about its servers are: one directory each. An
        /// absolute path, on storage that all hosts share if servers are to be moved between hosts.
        pub instances_dir: PathBuf = PathBuf::from("/var/lib/ebbtide/instances")
            => key("/mnt/nfs-1/instances");
        /// Where the sockets of guests are. An absolute, short path of this host alone, never on
        /// shared storage.
        pub run_dir: PathBuf = PathBuf::from("/run/ebbtide-agent") => key("/run/ebbtide");
        /// How new servers are defined: a file with libvirt's domain XML and placeholders. Not set:
        /// a built-in one.
        pub template: Option<PathBuf> = None => key("/etc/ebbtide/domain.xml");
        /// kvm, or qemu for hosts without hardware virtualisation.
        pub domain_type: DomainType = DomainType::Kvm => key("qemu");
        /// From what the disk of a new server is made; not set: the disk is empty.
        pub image: Option<PathBuf> = None => key("/var/lib/ebbtide/images/debian.raw");
        /// The same for single flavors.
        pub images: BTreeMap<String, PathBuf> = BTreeMap::new()
            => key(r#"{ "m1.small" = "/var/lib/ebbtide/images/small.raw" }"#);
        /// raw copies the image; qcow2 lays a new file over it (with qemu-img), which takes no time
        /// and little room.
        pub disk_format: DiskFormat = DiskFormat::Raw => key("qcow2");
        /// By resource class: where it differs from what the hypervisor says.
        pub inventory: BTreeMap<ResourceClass, Correction> = BTreeMap::new()
            => key("{ VCPU = { allocation_ratio = 4.0 } }");
        /// What the host is, as Placement's traits.
        pub traits: BTreeSet<Trait> = BTreeSet::new() => key(r#"["CUSTOM_SSD"]"#);
        /// How long a guest may take to shut down after its power button was pressed; then it is
        /// destroyed.
        // Guests of Debian and Fedora need five to ten seconds. The limit is short, because a
        // preemptor waits for the capacity.
        pub shutdown_seconds: f64 = 20.0 => key("60.0").range(0.0..=MAX_SECONDS);
        /// How long a command of virsh that should be quick may take.
        // A busy libvirtd answers within a second.
        pub command_seconds: f64 = 30.0 => key("60.0").range(0.0..=MAX_SECONDS);
        /// How notices reach the guest.
        pub notice: NoticeSettings = NoticeSettings::default();
        /// How metadata reaches the guest.
        pub metadata: MetadataSettings = MetadataSettings::default();
        /// The storage that it shares with other hosts, where preemptible servers are kept.
        pub storage: Option<StorageSettings> = None;
        /// Hosts to which servers may be moved, in the order of trial.
        pub peers: Vec<Peer> = Vec::new();
    }
}

/// libvirt's `<domain type='…'>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DomainType {
    /// With hardware virtualisation.
    Kvm,
    /// By software.
    Qemu,
}

ebbtide_model::words!(DomainType, DiskFormat);

impl DomainType {
    /// As libvirt writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Qemu => "qemu",
        }
    }
}

/// How a disk is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskFormat {
    /// The bytes as they are, sparse.
    Raw,
    /// Over an image that is shared by many.
    Qcow2,
}

impl DiskFormat {
    /// As libvirt and qemu-img write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

ebbtide_model::settings! {
    /// What an operator knows better than the hypervisor; what is not set is as the hypervisor
    /// says.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct Correction: Default {
        /// All there is.
        pub total: Option<u64> = None => key("64");
        /// Kept back for the host itself.
        pub reserved: Option<u64> = None => key("2");
        /// How often what is left is sold.
        pub allocation_ratio: Option<f64> = None => key("4.0");
    }
}

ebbtide_model::settings! {
    /// The table `driver.libvirt.notice`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct NoticeSettings: Default {
        /// Tell guests of their end on the virtio channel org.ebbtide.notice.0.
        pub channel: bool = true => key("false");
        /// The file that the guest agent writes in the guest; empty if it is not to be asked.
        pub agent_file: String = "/run/ebbtide-notice".to_owned() => key("");
    }
}

ebbtide_model::settings! {
    /// The table `driver.libvirt.metadata`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct MetadataSettings: Default {
        /// Serve metadata on the guest's own network interface as well as on the guest's socket in
        /// `run_dir`.
        pub interface: bool = true => key("false");
        /// Where on that interface.
        pub port: u16 = 80 => key("8080").unit("port");
    }
}

ebbtide_model::settings! {
    /// Another host.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Peer {
        /// A host to which servers may be moved, in the order of trial: libvirt's name for the
        /// connection, as seen from here.
        pub uri: String => key("qemu+ssh://compute-2/system");
        /// Where the memory is sent; not set: libvirt chooses.
        pub migrate_uri: Option<String> = None => key("tcp://192.0.2.12");
        /// The other host's `run_dir`, if it differs.
        pub run_dir: Option<PathBuf> = None => key("/run/ebbtide");
        /// How much of its memory servers may take; all of it if nothing is said.
        pub memory_mb: Option<u64> = None => key("16384");
        /// More options of virsh migrate.
        #[serde(default)]
        pub options: Vec<String> = Vec::new() => key(r#"["--copy-storage-all"]"#);
    }
}

impl LibvirtSettings {
    /// Reads and checks the table, and the template that it names.
    ///
    /// # Errors
    /// [`AgentError::Config`] that names the key.
    pub fn from_table(table: &toml::Table) -> Result<Self, AgentError> {
        let settings: Self = table.clone().try_into().map_err(|error: toml::de::Error| {
            AgentError::config("driver.libvirt", toml_text::without_values(error.message()))
        })?;
        let refused = |key: &str, problem: String| {
            Err(AgentError::config(format!("driver.libvirt.{key}"), problem))
        };
        if settings.uri.is_empty() {
            return refused(
                "uri",
                "it is empty; the usual one is qemu:///system".to_owned(),
            );
        }
        check_ranges(&settings)
            .map_err(|range| AgentError::out_of_range("driver.libvirt", range))?;
        for (key, dir) in [
            ("instances_dir", &settings.instances_dir),
            ("run_dir", &settings.run_dir),
        ] {
            if !dir.is_absolute() {
                return refused(key, "it must be an absolute path".to_owned());
            }
        }
        let run_dir = settings.run_dir.as_os_str().len();
        if run_dir > MAX_RUN_DIR {
            let problem = format!(
                "it has {run_dir} bytes, at most {MAX_RUN_DIR} are possible: the paths of sockets are limited to 107"
            );
            return refused("run_dir", problem);
        }
        for (class, correction) in &settings.inventory {
            let mut whole = Inventory::of(correction.total.unwrap_or(MOST));
            correction.apply(&mut whole);
            if let Err(error) = whole.check(class) {
                return refused(&format!("inventory.{class}"), error.to_string());
            }
        }
        if let Some(storage) = &settings.storage {
            storage.check("libvirt")?;
        }
        Template::open(settings.template.as_deref())?;
        Ok(settings)
    }

    pub(super) fn shutdown_time(&self) -> Duration {
        Duration::try_from_secs_f64(self.shutdown_seconds).unwrap_or(Duration::ZERO)
    }

    pub(super) fn command_limit(&self) -> Duration {
        Duration::try_from_secs_f64(self.command_seconds).unwrap_or(Duration::ZERO)
    }

    pub(super) fn image_of(&self, flavor: &str) -> Option<&PathBuf> {
        self.images.get(flavor).or(self.image.as_ref())
    }
}

impl Correction {
    pub(super) fn apply(&self, inventory: &mut Inventory) {
        inventory.total = self.total.unwrap_or(inventory.total);
        inventory.reserved = self.reserved.unwrap_or(inventory.reserved);
        inventory.allocation_ratio = self.allocation_ratio.unwrap_or(inventory.allocation_ratio);
    }
}
