//! The NUMA topology that a flavor and an image ask for (`hardware.numa_get_constraints`).

use super::{Constraints, fault};
use crate::fault::NovaException;
use crate::image::cell_cpus;
use crate::image::cpu_spec;
use crate::model::{InstanceNumaCell, InstanceNumaTopology};
use crate::python::{Value, number};
use std::collections::BTreeSet;

/// Most cells that flavors and images can describe (`ImageMetaProps.NUMA_NODES_MAX`).
const MOST_CELLS: usize = 128;
const TRAIT: &str = "HW_CPU_HYPERTHREADING";

/// Whether a key begins with a prefix, perhaps the number of a group, a colon and a name.
/// Nova's pattern has no end: a longer name counts as well.
fn names(key: &str, prefix: &str, name: &str) -> bool {
    let group = |rest: &str| {
        let (group, tail) = rest.split_once(':')?;
        let is_number = !group.starts_with('0') && group.bytes().all(|b| b.is_ascii_digit());
        Some(is_number && tail.starts_with(name))
    };
    key.strip_prefix(prefix).and_then(group).unwrap_or(false)
}

fn invalid(message: &str) -> NovaException {
    NovaException::new("InvalidRequest", message)
}

/// CPUs of a cell as the model has them. More than 64 bits are no number of a CPU of a flavor.
fn as_set<'a>(cpus: impl Iterator<Item = &'a i128>) -> BTreeSet<i64> {
    cpus.filter_map(|cpu| i64::try_from(*cpu).ok()).collect()
}

/// What the checks of policies come to.
struct CpuPolicies<'a> {
    policy: Option<&'a str>,
    threads: Option<&'a str>,
    emulator: Option<&'a str>,
    /// The pinned ones.
    dedicated: BTreeSet<i128>,
}

impl<'a> Constraints<'a> {
    /// `numa_get_constraints`; `None`: the instance has no topology.
    pub(crate) fn numa_topology(self) -> Result<Option<InstanceNumaTopology>, NovaException> {
        let policies = self.cpu_policies()?;
        let nodes = self.node_count()?;
        let page_size = self.page_size()?;
        self.locked_memory()?;
        let pinned = matches!(policies.policy, Some("dedicated" | "mixed"));
        let has_pages = page_size.is_some_and(|size| size != 0.0);
        if nodes.is_none() && !has_pages && self.vpmems().is_empty() && !pinned {
            return Ok(None);
        }
        let cells = self.cells(nodes.unwrap_or(1), &policies.dedicated)?;
        // An empty word is no value of the field, though the checks above take it.
        if policies.threads == Some("") {
            return Err(NovaException::new(
                "ValueError",
                "hw:cpu_thread_policy is empty",
            ));
        }
        let cells = cells.into_iter().map(|cell| InstanceNumaCell {
            #[allow(clippy::cast_possible_truncation, reason = "int() truncates, too")]
            pagesize: page_size.map(|size| size as i64),
            cpu_policy: policies.policy.map(str::to_owned),
            cpu_thread_policy: policies.threads.map(str::to_owned),
            ..cell
        });
        Ok(Some(InstanceNumaTopology {
            cells: cells.collect(),
            emulator_threads_policy: policies.emulator.map(str::to_owned),
        }))
    }

    fn cpu_policies(self) -> Result<CpuPolicies<'a>, NovaException> {
        let mut policy = self.cpu_policy()?;
        let mut threads = self.cpu_thread_policy()?;
        let realtime = self.realtime_cpus()?;
        let dedicated = self.dedicated_cpus()?;
        let emulator = self.emulator_threads()?;
        let [vcpus, pcpus] = ["VCPU", "PCPU"].map(|class| self.asked_of(class));
        if policy.is_some() && (vcpus != 0 || pcpus != 0) {
            let text = "resources:VCPU or resources:PCPU beside a CPU policy; use one or the other";
            return Err(invalid(text));
        }
        if vcpus != 0 && pcpus != 0 {
            return Err(invalid(
                "resources:VCPU and resources:PCPU; use one or the other",
            ));
        }
        if pcpus != 0 {
            let isolated = i128::from(emulator == Some("isolate"));
            if i128::from(self.flavor.vcpus) + isolated != pcpus {
                return Err(invalid(
                    "resources:PCPU is not the number of the flavor's CPUs",
                ));
            }
            policy = Some("dedicated");
        }
        if vcpus != 0 {
            policy = Some("shared");
        }
        let hyperthreading = self.hyperthreading();
        let said = |word: Option<&str>| word.is_some_and(|word| !word.is_empty());
        if said(threads) && said(hyperthreading) {
            let text = "trait:HW_CPU_HYPERTHREADING beside a CPU thread policy; use one of them";
            return Err(invalid(text));
        }
        match hyperthreading {
            Some("forbidden") => threads = Some("isolate"),
            Some("required") => threads = Some("require"),
            _ => {}
        }
        // A set that is empty counts as none.
        let realtime = realtime.filter(|cpus| !cpus.is_empty());
        match policy {
            Some("dedicated") if dedicated.is_some() => {
                return Err(fault("RequiredMixedInstancePolicy", "cpu_dedicated_mask"));
            }
            Some("dedicated") => {}
            Some("mixed") if realtime.is_some() == dedicated.is_some() => {
                return Err(fault(
                    "RequiredMixedOrRealtimeCPUMask",
                    "cpu_dedicated_mask",
                ));
            }
            Some("mixed") => {}
            _ if said(threads) => {
                let class = "CPUThreadPolicyConfigurationInvalid";
                return Err(fault(class, "cpu_thread_policy"));
            }
            _ if emulator == Some("isolate") => {
                let class = "BadRequirementEmulatorThreadsPolicy";
                return Err(fault(class, "emulator_threads_policy"));
            }
            _ if dedicated.is_some() => {
                return Err(fault("RequiredMixedInstancePolicy", "cpu_dedicated_mask"));
            }
            _ if realtime.is_some() => {
                return Err(fault("RealtimeConfigurationInvalid", "cpu_realtime"));
            }
            _ => {}
        }
        let dedicated = match policy {
            Some("dedicated") => self.cpus()?,
            Some("mixed") => dedicated.or(realtime).unwrap_or_default(),
            _ => BTreeSet::new(),
        };
        Ok(CpuPolicies {
            policy,
            threads,
            emulator,
            dedicated,
        })
    }

    /// `_get_vcpu_pcpu_resources`: how much of a class the extra specs ask for. What is no number
    /// is left out.
    fn asked_of(self, class: &str) -> i128 {
        let specs = self
            .flavor
            .extra_specs
            .iter()
            .flat_map(|specs| specs.iter());
        let amounts = specs
            .filter(|(key, _)| names(key, "resources", class))
            .filter_map(|(_, value)| number::int(value));
        amounts.fold(0, i128::saturating_add)
    }

    /// `_get_hyperthreading_trait`.
    fn hyperthreading(self) -> Option<&'a str> {
        let mut specs = self
            .flavor
            .extra_specs
            .iter()
            .flat_map(|specs| specs.iter());
        if let Some((_, value)) = specs.find(|(key, _)| names(key, "trait", TRAIT)) {
            return Some(value);
        }
        let Some(Value::List(required)) = self.property("traits_required") else {
            return None;
        };
        let mut required = required.iter();
        required
            .any(|name| name.text() == TRAIT)
            .then_some("required")
    }

    /// `_get_numa_node_count_constraint`.
    fn node_count(self) -> Result<Option<usize>, NovaException> {
        let flavor = self
            .extra_spec("hw:numa_nodes")
            .filter(|text| !text.is_empty());
        let image = match self.property("hw_numa_nodes") {
            Some(Value::Int(nodes)) => Some(*nodes),
            _ => None,
        };
        let nodes = match (flavor, image) {
            (Some(_), Some(nodes)) if nodes != 0 => {
                return Err(fault("ImageNUMATopologyForbidden", "numa_nodes"));
            }
            // Only text that Python would write for the number is one (`is_int_like`).
            (Some(text), _) => number::int(text).filter(|nodes| nodes.to_string() == text),
            (None, Some(nodes)) => Some(nodes),
            (None, None) => return Ok(None),
        };
        let nodes = nodes.filter(|nodes| *nodes >= 1);
        let nodes = nodes.ok_or_else(|| fault("InvalidNUMANodesNumber", "numa_nodes"))?;
        Ok(Some(usize::try_from(nodes).unwrap_or(usize::MAX)))
    }

    /// `_get_constraint_mappings_from_flavor`: `KEY.0`, `KEY.1`, … up to the first that is missing.
    fn mapped<V>(
        self,
        key: &str,
        read: impl Fn(&str) -> Result<V, NovaException>,
    ) -> Result<Option<Vec<V>>, NovaException> {
        let values = (0..MOST_CELLS).map_while(|cell| self.extra_spec(&format!("{key}.{cell}")));
        let values: Vec<V> = values.map(read).collect::<Result<_, _>>()?;
        Ok(Some(values).filter(|values| !values.is_empty()))
    }

    /// A list of the flavor's or of the image's; not of both.
    fn either<V>(
        self,
        flavor: Option<Vec<V>>,
        property: &str,
        read: impl Fn(&Value) -> Option<V>,
    ) -> Result<Option<Vec<V>>, NovaException> {
        let image = match self.property(property) {
            Some(Value::List(items)) => Some(items.iter().filter_map(read).collect()),
            _ => None,
        };
        if flavor.is_some() && image.is_some() {
            return Err(fault("ImageNUMATopologyForbidden", property));
        }
        Ok(flavor.or(image))
    }

    /// The cells with their CPUs and memory.
    fn cells(
        self,
        nodes: usize,
        pinned: &BTreeSet<i128>,
    ) -> Result<Vec<InstanceNumaCell>, NovaException> {
        let cpus = self.mapped("hw:numa_cpus", cpu_spec)?;
        let cpus = self.either(cpus, "hw_numa_cpus", cell_cpus)?;
        let int = |text: &str| {
            let bad = || NovaException::new("ValueError", format!("{text:?} is no number"));
            number::int(text).ok_or_else(bad)
        };
        let memory = self.mapped("hw:numa_mem", int)?;
        let memory = self.either(memory, "hw_numa_mem", |item| match item {
            Value::Int(memory) => Some(*memory),
            _ => None,
        })?;
        let incomplete = || fault("ImageNUMATopologyIncomplete", "numa_cpus and numa_mem");
        let parts = match (cpus, memory) {
            (None, None) => self.equal_parts(nodes)?,
            (Some(cpus), Some(memory)) if cpus.len() == nodes && memory.len() == nodes => {
                let parts: Vec<_> = cpus.into_iter().zip(memory).collect();
                self.check(&parts)?;
                parts
            }
            _ => return Err(incomplete()),
        };
        let all = self.cpus()?;
        let cell = |(id, (cpus, memory)): (usize, (BTreeSet<i128>, i128))| InstanceNumaCell {
            id: i64::try_from(id).unwrap_or(i64::MAX),
            cpuset: as_set(cpus.intersection(&all).filter(|cpu| !pinned.contains(cpu))),
            pcpuset: as_set(cpus.intersection(pinned)),
            memory: i64::try_from(memory).unwrap_or(i64::MAX),
            pagesize: None,
            cpu_policy: None,
            cpu_thread_policy: None,
            cpuset_reserved: None,
            cpu_pinning: None,
        };
        Ok(parts.into_iter().enumerate().map(cell).collect())
    }

    /// `_get_numa_topology_auto`.
    fn equal_parts(self, nodes: usize) -> Result<Vec<(BTreeSet<i128>, i128)>, NovaException> {
        let (vcpus, memory) = (
            i128::from(self.flavor.vcpus),
            i128::from(self.flavor.memory_mb),
        );
        let count = i128::try_from(nodes).unwrap_or(i128::MAX);
        if vcpus % count > 0 || memory % count > 0 {
            return Err(fault("ImageNUMATopologyAsymmetric", "numa_nodes"));
        }
        let each = vcpus / count;
        let part = |node: i128| ((node * each..(node + 1) * each).collect(), memory / count);
        Ok((0..count).map(part).collect())
    }

    /// What `_get_numa_topology_manual` refuses.
    fn check(self, parts: &[(BTreeSet<i128>, i128)]) -> Result<(), NovaException> {
        let vcpus = i128::from(self.flavor.vcpus);
        let mut left = self.cpus()?;
        for cpu in parts.iter().flat_map(|(cpus, _)| cpus) {
            if *cpu >= vcpus {
                return Err(fault("ImageNUMATopologyCPUOutOfRange", "numa_cpus"));
            }
            if !left.remove(cpu) {
                return Err(fault("ImageNUMATopologyCPUDuplicates", "numa_cpus"));
            }
        }
        if !left.is_empty() {
            return Err(fault("ImageNUMATopologyCPUsUnassigned", "numa_cpus"));
        }
        let memory = parts.iter().map(|(_, memory)| *memory);
        if memory.fold(0, i128::saturating_add) != i128::from(self.flavor.memory_mb) {
            return Err(fault("ImageNUMATopologyMemoryOutOfRange", "numa_mem"));
        }
        Ok(())
    }
}
