//! IsolatedHostsFilter (`isolated_hosts_filter.py`).

use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// Isolated images run on isolated hosts only and, unless it is switched off, isolated hosts run
/// isolated images only.
pub struct IsolatedHosts;

impl Filter for IsolatedHosts {
    fn name(&self) -> &'static str {
        "IsolatedHostsFilter"
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
        let options = context.options;
        let restrict = options.restrict_isolated_hosts_to_isolated_images;
        if options.isolated_images.is_empty() && !restrict {
            return Ok(true);
        }
        let Some(isolated_hosts) = &options.isolated_hosts else {
            return Err(NovaException::new("TypeError", "isolated_hosts is null"));
        };
        let host_isolated = isolated_hosts.contains(&host.host);
        if options.isolated_images.is_empty() {
            return Ok(!host_isolated);
        }
        let image = spec.image.as_ref().and_then(|image| image.id.as_ref());
        let image_isolated = image.is_some_and(|image| options.isolated_images.contains(image));
        Ok(if restrict {
            image_isolated == host_isolated
        } else {
            !image_isolated || host_isolated
        })
    }
}
