//! What nova-api makes of a flavor and an image before a request for new servers reaches the
//! scheduler (`API._validate_and_build_base_options`, `RequestSpec.from_components`): the NUMA
//! topology, the PCI requests, and their groups for Placement.

use crate::constraints::Constraints;
use crate::fault::NovaException;
use crate::image::Image;
use crate::model::{Flavor, InstanceNumaTopology, Options, PciRequest, RequestGroup};
use crate::pci::requests_of_flavor;
use crate::placement::custom_class;
use crate::release::Feature;
use ebbtide_model::resource::STANDARD;
use std::collections::BTreeSet;
use std::fmt;

/// The extra spec that names PCI devices.
const PCI_SPEC: &str = "pci_passthrough:alias";
/// The extra spec that names a profile of Cyborg.
const CYBORG_SPEC: &str = "accel:device_profile";
const CUSTOM: &str = "CUSTOM_";

/// What a request for a flavor and an image needs besides amounts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BootNeeds {
    pub numa_topology: Option<InstanceNumaTopology>,
    pub pci_requests: Vec<PciRequest>,
    /// One group a device, where Placement counts devices.
    pub requested_resources: Vec<RequestGroup>,
}

/// Why there is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootError {
    /// nova-api refuses flavor and image, with this exception.
    Refused(NovaException),
    /// What is needed is known elsewhere: what, and what can be done.
    Unknown(String),
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(fault) => write!(f, "Nova refuses flavor and image with {fault}"),
            Self::Unknown(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for BootError {}

impl From<NovaException> for BootError {
    fn from(fault: NovaException) -> Self {
        Self::Refused(fault)
    }
}

/// What nova-api makes of a flavor and an image.
///
/// # Errors
/// [`BootError`]. Where Nova would raise several exceptions, it is the first.
pub fn boot_needs(
    flavor: &Flavor,
    image: &Image,
    options: &Options,
) -> Result<BootNeeds, BootError> {
    let constraints = Constraints { flavor, image };
    // The API checks this first, and once more with the topology.
    constraints.realtime_cpus()?;
    let numa_topology = constraints.numa_topology()?;
    let policy = constraints.pci_numa_policy()?;
    if constraints
        .extra_spec(CYBORG_SPEC)
        .is_some_and(|profile| !profile.is_empty())
    {
        return Err(BootError::Unknown(format!(
            "the flavor has {CYBORG_SPEC}, whose devices Cyborg names; what-if does not ask Cyborg"
        )));
    }
    let pci_requests = match constraints.extra_spec(PCI_SPEC) {
        Some(_) if options.pci_alias.is_empty() => {
            return Err(BootError::Unknown(format!(
                "the flavor has {PCI_SPEC}, and the scheduler's nova.conf has no [pci] alias; \
                 give it those of nova-api"
            )));
        }
        Some(asked) => requests_of_flavor(asked, policy, options)?,
        None => Vec::new(),
    };
    let in_placement = options.pci_in_placement && options.release.has(Feature::PciInPlacement);
    let requested_resources = match in_placement {
        true => groups(&pci_requests)?,
        false => Vec::new(),
    };
    Ok(BootNeeds {
        numa_topology,
        pci_requests,
        requested_resources,
    })
}

/// `generate_request_groups_from_pci_requests`: each device is a group of its own.
fn groups(requests: &[PciRequest]) -> Result<Vec<RequestGroup>, BootError> {
    let mut groups = Vec::new();
    for request in requests {
        let [spec] = request.spec.as_slice() else {
            let text = "several alternatives of one alias in Placement";
            return Err(NovaException::new("ValueError", text).into());
        };
        let tag = |name: &str| spec.get(name).and_then(|value| value.as_str());
        let class = match tag("resource_class").filter(|class| !class.is_empty()) {
            Some(class) => normal_class(&class.to_uppercase()),
            None => {
                // What is missing reads as Python's None.
                let id = |name| tag(name).unwrap_or("None");
                format!("CUSTOM_PCI_{}_{}", id("vendor_id"), id("product_id")).to_uppercase()
            }
        };
        let required_traits = traits(tag("traits").unwrap_or_default())?;
        let id = request.request_id.as_deref().unwrap_or_default();
        groups.extend((0..request.count).map(|device| RequestGroup {
            use_same_provider: true,
            requester_id: Some(format!("{id}-{device}")),
            resources: [(class.clone(), 1)].into(),
            required_traits: required_traits.clone(),
            ..RequestGroup::default()
        }));
    }
    Ok(groups)
}

/// `_normalize_resource_class`, of upper case.
fn normal_class(class: &str) -> String {
    if STANDARD.contains(&class) || class.starts_with(CUSTOM) {
        class.to_owned()
    } else {
        custom_class(class)
    }
}

/// `get_traits`, as far as the names of os-traits do not matter.
fn traits(names: &str) -> Result<BTreeSet<String>, BootError> {
    let names = names.split(',').filter(|name| !name.is_empty());
    names
        .map(|name| {
            let name = name.to_uppercase();
            if name.starts_with(CUSTOM) {
                return Ok(name);
            }
            Err(BootError::Unknown(format!(
                "an alias requires the trait {name}; what-if knows names that begin with {CUSTOM} \
                 only, because whether another is a standard one depends on Nova's os-traits"
            )))
        })
        .collect()
}
