//! What flavor and image ask for together (`nova/virt/hardware.py`): each a word or a set, or an
//! error where the two disagree.

mod numa;
mod pages;

use crate::fault::NovaException;
use crate::image::{Image, MOST_CPUS, cpu_spec};
use crate::model::Flavor;
use crate::pci::NUMA_POLICIES;
use crate::python::{Value, text};
use std::collections::BTreeSet;

fn fault(class: &'static str, key: &str) -> NovaException {
    NovaException::new(
        class,
        format!("flavor and image ask for {key} in a way that Nova refuses"),
    )
}

/// `strutils.bool_from_string`.
pub(crate) fn boolean(word: &str) -> bool {
    matches!(
        text::strip(word).to_lowercase().as_str(),
        "1" | "t" | "true" | "on" | "y" | "yes"
    )
}

/// A flavor and an image together.
#[derive(Clone, Copy)]
pub(crate) struct Constraints<'a> {
    pub(crate) flavor: &'a Flavor,
    /// An empty one where the request has none.
    pub(crate) image: &'a Image,
}

impl<'a> Constraints<'a> {
    /// The flavor's extra spec `prefix:key`.
    pub(crate) fn extra_spec(self, key: &str) -> Option<&'a str> {
        self.flavor
            .extra_specs
            .as_ref()?
            .get(key)
            .map(String::as_str)
    }

    /// The image's property.
    fn property(self, key: &str) -> Option<&'a Value> {
        self.image.properties.get(key)
    }

    fn property_text(self, key: &str) -> Option<&'a str> {
        self.image.properties.text(key)
    }

    fn property_bool(self, key: &str) -> Option<bool> {
        match self.property(key) {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// An image and a flavor that disagree. Nova's own message needs the image's name, and where
    /// that is not set, the message fails and not the request (NotImplementedError).
    fn conflict(self, key: &str) -> NovaException {
        match self.image.name {
            Some(_) => fault("FlavorImageConflict", key),
            None => fault("NotImplementedError", key),
        }
    }

    /// `_get_unique_flavor_image_meta`: what flavor or image says; both only if they say the same.
    fn unique(self, prefix: &str, key: &str) -> Result<Option<&'a str>, NovaException> {
        let flavor = self
            .extra_spec(&format!("{prefix}:{key}"))
            .filter(|value| !value.is_empty());
        let image = self
            .property_text(&format!("{prefix}_{key}"))
            .filter(|value| !value.is_empty());
        match (flavor, image) {
            (Some(flavor), Some(image)) if flavor != image => Err(self.conflict(key)),
            _ => Ok(flavor.or(image)),
        }
    }

    /// A unique word out of some.
    fn one_of(
        self,
        prefix: &str,
        key: &str,
        words: &[&str],
    ) -> Result<Option<&'a str>, NovaException> {
        match self.unique(prefix, key)? {
            Some(word) if !words.contains(&word) => Err(fault("Invalid", key)),
            word => Ok(word),
        }
    }

    /// `get_packed_virtqueue_constraint`.
    pub(crate) fn packed_virtqueue(self) -> Result<bool, NovaException> {
        let flavor = self.extra_spec("hw:virtio_packed_ring").map(boolean);
        let image = self.property_bool("hw_virtio_packed_ring");
        match (flavor, image) {
            (Some(flavor), Some(image)) if flavor != image => {
                Err(fault("FlavorImageConflict", "virtio_packed_ring"))
            }
            _ => Ok(flavor.or(image).unwrap_or(false)),
        }
    }

    /// `get_ephemeral_encryption_constraint`.
    pub(crate) fn ephemeral_encryption(self) -> Result<bool, NovaException> {
        let flavor = self.extra_spec("hw:ephemeral_encryption").map(boolean);
        let image = self.property_bool("hw_ephemeral_encryption");
        match (flavor, image) {
            (Some(flavor), Some(image)) if flavor != image => {
                Err(self.conflict("ephemeral_encryption"))
            }
            _ => Ok(flavor.or(image).unwrap_or(false)),
        }
    }

    /// `get_ephemeral_encryption_format`.
    pub(crate) fn ephemeral_encryption_format(self) -> Result<Option<&'a str>, NovaException> {
        self.one_of(
            "hw",
            "ephemeral_encryption_format",
            &["plain", "luks", "luksv2"],
        )
    }

    /// `get_sound_model`.
    pub(crate) fn sound_model(self) -> Result<Option<&'a str>, NovaException> {
        let models = [
            "sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio",
        ];
        self.one_of("hw", "sound_model", &models)
    }

    /// `get_vtpm_constraint`: version and model.
    pub(crate) fn vtpm(self) -> Result<Option<(&'a str, &'a str)>, NovaException> {
        let Some(version) = self.one_of("hw", "tpm_version", &["1.2", "2.0"])? else {
            return Ok(None);
        };
        let model = self
            .one_of("hw", "tpm_model", &["tpm-tis", "tpm-crb"])?
            .unwrap_or("tpm-tis");
        if model == "tpm-crb" && version != "2.0" {
            return Err(fault("Invalid", "tpm_model"));
        }
        Ok(Some((version, model)))
    }

    /// `get_tpm_secret_security_constraint`, `user` if none is told.
    pub(crate) fn tpm_secret_security(self) -> &'a str {
        self.extra_spec("hw:tpm_secret_security")
            .filter(|word| !word.is_empty())
            .unwrap_or("user")
    }

    /// `get_secure_boot_constraint`.
    pub(crate) fn secure_boot(self) -> Result<Option<&'a str>, NovaException> {
        self.one_of("os", "secure_boot", &["required", "disabled", "optional"])
    }

    /// `get_maxphysaddr_mode`.
    pub(crate) fn maxphysaddr_mode(self) -> Result<Option<&'a str>, NovaException> {
        self.one_of("hw", "maxphysaddr_mode", &["passthrough", "emulate"])
    }

    /// `get_stateless_firmware_constraint`.
    pub(crate) fn stateless_firmware(self) -> bool {
        self.property_text("hw_firmware_type") == Some("uefi")
            && self.property_bool("hw_firmware_stateless") == Some(true)
    }

    /// `get_vpmems`.
    pub(crate) fn vpmems(self) -> Vec<&'a str> {
        let labels = self.extra_spec("hw:pmem").unwrap_or_default().split(',');
        labels
            .map(text::strip)
            .filter(|label| !label.is_empty())
            .collect()
    }

    /// `get_cpu_policy_constraint`.
    pub(crate) fn cpu_policy(self) -> Result<Option<&'a str>, NovaException> {
        let flavor = self
            .extra_spec("hw:cpu_policy")
            .filter(|policy| !policy.is_empty());
        let image = self.property_text("hw_cpu_policy");
        let forbidden = || fault("ImageCPUPinningForbidden", "cpu_policy");
        match flavor {
            None => Ok(image),
            Some("mixed") if image == Some("dedicated") => Err(forbidden()),
            Some("shared") if matches!(image, Some("mixed" | "dedicated")) => Err(forbidden()),
            Some("dedicated" | "mixed" | "shared") => Ok(flavor),
            Some(_) => Err(fault("InvalidCPUAllocationPolicy", "cpu_policy")),
        }
    }

    /// `get_cpu_thread_policy_constraint`.
    pub(crate) fn cpu_thread_policy(self) -> Result<Option<&'a str>, NovaException> {
        let flavor = self.extra_spec("hw:cpu_thread_policy");
        let image = self.property_text("hw_cpu_thread_policy");
        match flavor {
            None => Ok(image),
            Some("prefer") => Ok(flavor),
            Some("isolate" | "require" | "") if image.is_some() && image != flavor => {
                Err(fault("ImageCPUThreadPolicyForbidden", "cpu_thread_policy"))
            }
            Some("isolate" | "require" | "") => Ok(flavor),
            Some(_) => Err(fault(
                "InvalidCPUThreadAllocationPolicy",
                "cpu_thread_policy",
            )),
        }
    }

    /// `get_emulator_thread_policy_constraint`.
    pub(crate) fn emulator_threads(self) -> Result<Option<&'a str>, NovaException> {
        match self.extra_spec("hw:emulator_threads_policy") {
            None | Some("") => Ok(None),
            policy @ Some("share" | "isolate") => Ok(policy),
            Some(_) => Err(fault(
                "InvalidEmulatorThreadsPolicy",
                "emulator_threads_policy",
            )),
        }
    }

    /// The guest's CPUs.
    fn cpus(self) -> Result<BTreeSet<i128>, NovaException> {
        let vcpus = i128::from(self.flavor.vcpus);
        if vcpus > MOST_CPUS {
            return Err(NovaException::new(
                "MemoryError",
                format!("{vcpus} CPUs are more than can be held"),
            ));
        }
        Ok((0..vcpus).collect())
    }

    /// CPUs of a mask; one that begins with an exclusion excludes from all.
    fn masked(self, mask: &str) -> Result<BTreeSet<i128>, NovaException> {
        if text::strip(mask).starts_with('^') {
            cpu_spec(&format!("0-{},{mask}", i128::from(self.flavor.vcpus) - 1))
        } else {
            cpu_spec(mask)
        }
    }

    /// `get_dedicated_cpu_constraint`: the CPUs of a mixed instance that are pinned.
    pub(crate) fn dedicated_cpus(self) -> Result<Option<BTreeSet<i128>>, NovaException> {
        let Some(mask) = self
            .extra_spec("hw:cpu_dedicated_mask")
            .filter(|mask| !mask.is_empty())
        else {
            return Ok(None);
        };
        let pinned = self.masked(mask)?;
        let cpus = self.cpus()?;
        if pinned.is_empty() || cpus.is_subset(&pinned) || !pinned.is_subset(&cpus) {
            return Err(fault(
                "InvalidMixedInstanceDedicatedMask",
                "cpu_dedicated_mask",
            ));
        }
        Ok(Some(pinned))
    }

    /// `get_realtime_cpu_constraint`: the CPUs that are realtime.
    pub(crate) fn realtime_cpus(self) -> Result<Option<BTreeSet<i128>>, NovaException> {
        if !self.extra_spec("hw:cpu_realtime").is_some_and(boolean) {
            return Ok(None);
        }
        let image = self
            .property_text("hw_cpu_realtime_mask")
            .filter(|mask| !mask.is_empty());
        let flavor = self
            .extra_spec("hw:cpu_realtime_mask")
            .filter(|mask| !mask.is_empty());
        let cpus = self.cpus()?;
        let realtime = match image.or(flavor) {
            Some(mask) => self.masked(mask)?,
            None => cpus.clone(),
        };
        let bad = || fault("RealtimeMaskNotFoundOrInvalid", "cpu_realtime_mask");
        if realtime.is_empty() {
            return Err(bad());
        }
        let emulator = self.emulator_threads()?;
        if (realtime == cpus && emulator.is_none()) || !realtime.is_subset(&cpus) {
            return Err(bad());
        }
        Ok(Some(realtime))
    }

    /// `get_pci_numa_policy_constraint`.
    pub(crate) fn pci_numa_policy(self) -> Result<Option<&'a str>, NovaException> {
        let flavor = self
            .extra_spec("hw:pci_numa_affinity_policy")
            .filter(|policy| !policy.is_empty());
        let image = self.property_text("hw_pci_numa_affinity_policy");
        match flavor.or(image) {
            Some(_) if flavor.is_some() && image.is_some() && flavor != image => Err(fault(
                "ImagePCINUMAPolicyForbidden",
                "pci_numa_affinity_policy",
            )),
            Some(policy) if !NUMA_POLICIES.contains(&policy) => {
                Err(fault("InvalidPCINUMAAffinity", "pci_numa_affinity_policy"))
            }
            policy => Ok(policy),
        }
    }

    /// `get_mem_encryption_constraint`: the trait that hosts must have.
    pub(crate) fn mem_encryption(self) -> Result<Option<&'static str>, NovaException> {
        let flavor = self.extra_spec("hw:mem_encryption").map(boolean);
        let image = self.property_bool("hw_mem_encryption");
        if flavor != Some(true) && image != Some(true) {
            return Ok(None);
        }
        let conflict = |key| fault("FlavorImageConflict", key);
        if flavor.is_some() && image.is_some() && flavor != image {
            return Err(conflict("mem_encryption"));
        }
        let flavor = self.extra_spec("hw:mem_encryption_model");
        let image = self.property_text("hw_mem_encryption_model");
        if flavor.is_some() && image.is_some() && flavor != image {
            return Err(conflict("mem_encryption_model"));
        }
        let (required, stateless) = match image
            .or_else(|| flavor.filter(|model| !model.is_empty()))
            .unwrap_or("amd-sev")
        {
            "amd-sev" => ("HW_CPU_X86_AMD_SEV", false),
            "amd-sev-es" => ("HW_CPU_X86_AMD_SEV_ES", false),
            "amd-sev-snp" => ("HW_CPU_X86_AMD_SEV_SNP", true),
            "intel-tdx" => ("HW_CPU_X86_INTEL_TDX", true),
            _ => return Err(fault("Invalid", "mem_encryption_model")),
        };
        if self.property_text("hw_firmware_type") != Some("uefi") {
            return Err(conflict("mem_encryption"));
        }
        if self
            .property_text("hw_machine_type")
            .is_some_and(|machine| !machine.contains("q35"))
        {
            return Err(fault("InvalidMachineType", "mem_encryption"));
        }
        if stateless && !self.stateless_firmware() {
            return Err(fault("StatelessFirmwareRequired", "mem_encryption"));
        }
        if required == "HW_CPU_X86_INTEL_TDX"
            && self.property_text("hw_video_model") != Some("none")
        {
            return Err(fault("InvalidVideoMode", "mem_encryption"));
        }
        Ok(Some(required))
    }
}
