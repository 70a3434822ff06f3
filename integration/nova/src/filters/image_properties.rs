//! ImagePropertiesFilter (`image_props_filter.py`).

use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::image::{Predicate, Version};
use crate::model::{HostState, RequestSpec};
use crate::python::Value;

/// Architecture, hypervisor type and virtual machine mode of the image stand together in one of the
/// host's supported instances, and the hypervisor's version is what the image wants.
///
/// An image that also wants physical address bits raises: Nova looks for them in `cpu_info`, which
/// is text.
pub struct ImageProperties;

impl Filter for ImageProperties {
    fn name(&self) -> &'static str {
        "ImagePropertiesFilter"
    }

    fn once_per_request(&self) -> bool {
        true
    }

    fn on_rebuild(&self) -> bool {
        true
    }

    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let properties = spec.image.as_ref().map(|image| &image.properties);
        let property = |name| properties.and_then(|properties| properties.text(name));
        let default = context
            .options
            .image_properties_default_architecture
            .as_deref();
        let wanted: Vec<&str> = [
            property("hw_architecture").or(default),
            property("img_hv_type"),
            property("hw_vm_mode"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if wanted.is_empty() {
            return Ok(true);
        }
        // Membership, not position: that is how Nova compares.
        let supported = host.supported_instances.iter().flatten().any(|triple| {
            wanted
                .iter()
                .all(|word| triple.iter().flatten().any(|known| known == word))
        });
        let bits = properties
            .and_then(|properties| properties.get("hw_maxphysaddr_bits"))
            .is_some_and(Value::truth);
        if !supported
            || !version_fits(
                host.hypervisor_version,
                property("img_hv_requested_version"),
            )
        {
            return Ok(false);
        }
        if bits {
            return Err(NovaException::new(
                "AttributeError",
                "cpu_info is text and has no maxphysaddr",
            ));
        }
        Ok(true)
    }
}

/// Whether a version such as 8002000 meets conditions such as `>=6.0, <9`. A version of 0 meets
/// all.
fn version_fits(version: Option<i64>, conditions: Option<&str>) -> bool {
    let (Some(version), Some(conditions)) = (
        version.filter(|version| *version > 0),
        conditions.filter(|c| !c.is_empty()),
    ) else {
        return true;
    };
    let mut parts = Vec::new();
    let mut rest = version;
    while rest > 0 {
        parts.insert(0, (rest % 1000).to_string());
        rest /= 1000;
    }
    let version = Version::read(&parts.join("."));
    let predicate = Predicate::read(conditions);
    predicate
        .zip(version)
        .is_some_and(|(predicate, version)| predicate.satisfied_by(&version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hypervisor_version_reads_in_thousands() {
        assert!(version_fits(Some(8_002_000), Some(">=8.2,<8.3")));
        assert!(!version_fits(Some(7_002_000), Some(">=8.2")));
        assert!(version_fits(Some(0), Some(">=8.2")));
        assert!(version_fits(None, Some(">=8.2")));
    }
}
