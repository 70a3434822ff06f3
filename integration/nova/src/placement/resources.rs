//! What a request asks of Placement (`nova/scheduler/utils.py`,
//! `ResourceRequest.from_request_spec`).

use super::group::{self, Group};
use super::query_parts::Query;
use super::{Request, Root};
use crate::fault::NovaException;
use crate::release::Feature;

/// A request to Placement, in groups.
#[derive(Debug, Clone)]
pub(super) struct Resources {
    /// The group without a suffix has the key `None`. Order does not matter: the query is sorted.
    groups: Vec<(Option<String>, Group)>,
    pub(super) policy: Option<String>,
    pub(super) limit: Option<i64>,
    /// Groups with a suffix that the flavor made.
    pub(super) of_flavor: usize,
    /// All CPUs are pinned.
    pub(super) pinned: bool,
}

/// Prefix, suffix and name of an extra spec such as `resources_GPU:VGPU`.
fn parts(key: &str) -> Option<(&'static str, Option<&str>, &str)> {
    let (head, name) = key.split_once(':')?;
    let prefix = ["resources", "trait"]
        .into_iter()
        .find(|prefix| head.starts_with(prefix))?;
    let suffix = head.strip_prefix(prefix)?;
    let good = suffix.len() <= 64
        && suffix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    // Python's `.` matches no line feed and its `$` stands before a last one.
    let name = name.strip_suffix('\n').unwrap_or(name);
    (good && !name.contains('\n')).then_some((
        prefix,
        Some(suffix).filter(|suffix| !suffix.is_empty()),
        name,
    ))
}

impl Resources {
    /// The group of a suffix, made if it is not there.
    pub(super) fn group(&mut self, suffix: Option<&str>) -> &mut Group {
        let at = self
            .groups
            .iter()
            .position(|(known, _)| known.as_deref() == suffix);
        let at = at.unwrap_or_else(|| {
            let suffix = suffix.map(str::to_owned);
            let group = Group {
                suffix: suffix.clone(),
                ..Group::default()
            };
            self.groups.push((suffix, group));
            self.groups.len() - 1
        });
        &mut self.groups[at].1
    }

    fn add_trait(&mut self, name: &str, kind: &str) {
        self.group(None).add_trait(name, kind);
    }

    fn asks_for(&self, class: &str) -> bool {
        self.groups
            .iter()
            .any(|(_, group)| group.resources.contains_key(class))
    }

    /// Groups with a suffix.
    pub(super) fn suffixed(&self) -> usize {
        self.groups
            .iter()
            .filter(|(suffix, _)| suffix.is_some())
            .count()
    }

    /// Traits that any group requires.
    pub(super) fn required_traits(&self) -> impl Iterator<Item = &String> {
        self.groups
            .iter()
            .flat_map(|(_, group)| group.required.iter())
    }

    /// The query in parts.
    pub(super) fn asked(&self, root: &Root) -> Query {
        Query {
            text: self.query(root),
            limit: self.limit,
            group_policy: self.policy.clone(),
            root_required: root.required.clone(),
            root_forbidden: root.forbidden.clone(),
            same_subtree: root.same_subtree.clone(),
            groups: self.groups.iter().map(|(_, group)| group.asked()).collect(),
        }
    }

    pub(super) fn query(&self, root: &Root) -> String {
        let mut parameters: Vec<(String, String)> = Vec::new();
        if let Some(limit) = self.limit {
            parameters.push(("limit".to_owned(), limit.to_string()));
        }
        if let Some(policy) = &self.policy {
            parameters.push(("group_policy".to_owned(), policy.clone()));
        }
        let of_root = group::with_forbidden(&root.required, &root.forbidden);
        if !of_root.is_empty() {
            parameters.push(("root_required".to_owned(), of_root));
        }
        for suffixes in &root.same_subtree {
            let mut suffixes = suffixes.clone();
            suffixes.sort();
            parameters.push(("same_subtree".to_owned(), suffixes.join(",")));
        }
        parameters.extend(self.groups.iter().flat_map(|(_, group)| group.parameters()));
        group::encode(parameters)
    }

    /// Reads the request. Amounts of zero are taken out of the request's own groups as well: Nova
    /// does so in place, and refuses a group that is left empty the next time it reads the request.
    ///
    /// # Errors
    /// What the constraints raise; ValueError and RequestGroupSuffixConflict for the request's own
    /// groups.
    pub(super) fn read(request: &mut Request<'_>, pinning: bool) -> Result<Self, NovaException> {
        let mut read = Self {
            groups: Vec::new(),
            policy: None,
            limit: request.options.max_placement_results,
            of_flavor: 0,
            pinned: false,
        };
        read.of_extra_specs(request);
        read.of_flavor = read.suffixed();
        if let Some(crate::python::Value::List(traits)) =
            request.image.properties.get("traits_required")
        {
            for name in traits {
                read.add_trait(&name.text(), "required");
            }
        }
        if pinning {
            read.of_pinning(request)?;
        }
        read.of_requested(request)?;
        read.of_flavor_itself(request);
        read.of_features(request)?;
        for group in &mut request.groups {
            group.strip_zeros();
        }
        for (_, group) in &mut read.groups {
            group.strip_zeros();
        }
        read.groups.retain(|(_, group)| !group.is_empty());
        Ok(read)
    }

    fn of_extra_specs(&mut self, request: &Request<'_>) {
        for (key, value) in request
            .spec
            .flavor
            .extra_specs
            .iter()
            .flat_map(|specs| specs.iter())
        {
            if key == "group_policy" {
                if matches!(value.as_str(), "none" | "isolate") {
                    self.policy = Some(value.clone());
                }
                continue;
            }
            match parts(key) {
                Some(("resources", suffix, name)) => {
                    self.group(suffix).add_resource_text(name, value)
                }
                Some((_, suffix, name)) => self.group(suffix).add_trait(name, value),
                None => {}
            }
        }
    }

    /// `_translate_pinning_policies`.
    fn of_pinning(&mut self, request: &Request<'_>) -> Result<(), NovaException> {
        let policy = request.constraints().cpu_policy()?;
        let threads = request.constraints().cpu_thread_policy()?;
        let emulator = request.constraints().emulator_threads()?;
        let vcpus = i128::from(request.spec.flavor.vcpus);
        let pinned = match policy {
            Some("dedicated") => {
                self.pinned = true;
                Some(vcpus)
            }
            Some("mixed") => {
                let dedicated = request.constraints().dedicated_cpus()?;
                let realtime = request.constraints().realtime_cpus()?;
                let pinned = dedicated
                    .or(realtime)
                    .and_then(|cpus| i128::try_from(cpus.len()).ok())
                    .unwrap_or(0);
                self.group(None).add_resource("VCPU", vcpus - pinned);
                Some(pinned)
            }
            _ => None,
        };
        if let Some(pinned) = pinned {
            let extra = i128::from(emulator == Some("isolate"));
            self.group(None).add_resource("PCPU", pinned + extra);
        }
        match threads {
            Some("isolate") => self.add_trait("HW_CPU_HYPERTHREADING", "forbidden"),
            Some("require") => self.add_trait("HW_CPU_HYPERTHREADING", "required"),
            _ => {}
        }
        Ok(())
    }

    /// Groups of ports and devices.
    fn of_requested(&mut self, request: &Request<'_>) -> Result<(), NovaException> {
        for group in &request.groups {
            let Some(suffix) = group.suffix.as_ref().filter(|suffix| !suffix.is_empty()) else {
                return Err(NovaException::new(
                    "ValueError",
                    "a request group without a requester",
                ));
            };
            if group.is_empty() {
                return Err(NovaException::new(
                    "ValueError",
                    format!("request group {suffix} asks for nothing"),
                ));
            }
            if self
                .groups
                .iter()
                .any(|(known, _)| known.as_ref() == Some(suffix))
            {
                return Err(NovaException::new("RequestGroupSuffixConflict", suffix));
            }
            self.groups.push((Some(suffix.clone()), group.clone()));
        }
        Ok(())
    }

    /// What the flavor is made of, where its extra specs do not say otherwise.
    fn of_flavor_itself(&mut self, request: &Request<'_>) {
        let flavor = &request.spec.flavor;
        let merged = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB"].map(|class| self.asks_for(class));
        if !merged[0] && !merged[1] {
            self.group(None)
                .add_resource("VCPU", i128::from(flavor.vcpus));
        }
        if !merged[2] {
            self.group(None)
                .add_resource("MEMORY_MB", i128::from(flavor.memory_mb));
        }
        if !merged[3] {
            let swap = -i128::from(flavor.swap)
                .checked_neg()
                .unwrap_or(0)
                .div_euclid(1024);
            let root = if request.spec.is_bfv {
                0
            } else {
                i128::from(flavor.root_gb)
            };
            let disk = i128::from(flavor.ephemeral_gb) + swap + root;
            if disk != 0 {
                self.group(None).add_resource("DISK_GB", disk);
            }
        }
    }

    /// Features of the guest that become resources and traits, in Nova's order.
    fn of_features(&mut self, request: &Request<'_>) -> Result<(), NovaException> {
        let release = request.options.release;
        if let Some(name) = request.constraints().mem_encryption()? {
            self.group(None).add_resource("MEM_ENCRYPTION_CONTEXT", 1);
            if release.has(Feature::MemoryEncryptionModel) {
                self.add_trait(name, "required");
            }
        }
        let mut pmems: Vec<(String, i128)> = Vec::new();
        for label in request.constraints().vpmems() {
            let class = custom_class(&format!("PMEM_NAMESPACE_{label}"));
            match pmems.iter_mut().find(|(known, _)| *known == class) {
                Some((_, amount)) => *amount += 1,
                None => pmems.push((class, 1)),
            }
        }
        for (class, amount) in pmems {
            self.group(None).add_resource(&class, amount);
        }
        if let Some((version, model)) = request.constraints().vtpm()? {
            let model = if model == "tpm-crb" {
                "COMPUTE_SECURITY_TPM_CRB"
            } else {
                "COMPUTE_SECURITY_TPM_TIS"
            };
            let version = if version == "2.0" {
                "COMPUTE_SECURITY_TPM_2_0"
            } else {
                "COMPUTE_SECURITY_TPM_1_2"
            };
            if release.has(Feature::TpmModel) {
                self.add_trait(model, "required");
            }
            self.add_trait(version, "required");
        }
        if request.constraints().pci_numa_policy()? == Some("socket") {
            self.add_trait("COMPUTE_SOCKET_PCI_NUMA_AFFINITY", "required");
        }
        if request.constraints().secure_boot()? == Some("required") {
            self.add_trait("COMPUTE_SECURITY_UEFI_SECURE_BOOT", "required");
        }
        let mode = if release.has(Feature::AddressSpace) {
            request.constraints().maxphysaddr_mode()?
        } else {
            None
        };
        match mode {
            Some("passthrough") => self.add_trait("COMPUTE_ADDRESS_SPACE_PASSTHROUGH", "required"),
            Some(_) => self.add_trait("COMPUTE_ADDRESS_SPACE_EMULATED", "required"),
            None => {}
        }
        if release.has(Feature::StatelessFirmware) && request.constraints().stateless_firmware() {
            self.add_trait("COMPUTE_SECURITY_STATELESS_FIRMWARE", "required");
        }
        Ok(())
    }
}

/// `os_resource_classes.normalize_name`: runs of what is no ASCII letter or digit become one
/// underscore.
pub(crate) fn custom_class(name: &str) -> String {
    let mut out = "CUSTOM_".to_owned();
    let mut in_run = false;
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_uppercase());
        } else if !in_run {
            out.push('_');
        }
        in_run = !c.is_ascii_alphanumeric();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extra_spec_names_a_group_by_its_suffix() {
        assert_eq!(parts("resources:VCPU"), Some(("resources", None, "VCPU")));
        assert_eq!(
            parts("resources_GPU-1:VGPU"),
            Some(("resources", Some("_GPU-1"), "VGPU"))
        );
        assert_eq!(
            parts("trait2:CUSTOM:X"),
            Some(("trait", Some("2"), "CUSTOM:X"))
        );
        assert_eq!(parts("traits.x:Y"), None);
        assert_eq!(parts("resources"), None);
        assert_eq!(parts("hw:cpu_policy"), None);
    }

    #[test]
    fn names_become_custom_classes() {
        assert_eq!(
            custom_class("PMEM_NAMESPACE_6GB-é.x"),
            "CUSTOM_PMEM_NAMESPACE_6GB_X"
        );
    }
}
