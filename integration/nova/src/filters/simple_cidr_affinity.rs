//! SimpleCIDRAffinityFilter (`affinity_filter.py`).

use super::contract::{Context, Filter};
use super::network::Network;
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};

/// The host's address lies in the network of the hints `build_near_host_ip` and `cidr` (`/24`), put
/// together as text.
pub struct SimpleCidrAffinity;

impl Filter for SimpleCidrAffinity {
    fn name(&self) -> &'static str {
        "SimpleCIDRAffinityFilter"
    }

    fn once_per_request(&self) -> bool {
        true
    }

    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        _: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let near = match spec.hint("build_near_host_ip") {
            None | Some([]) => return Ok(true),
            Some([near]) if near.is_empty() => return Ok(true),
            Some([near]) => near,
            Some(_) => {
                return Err(NovaException::new(
                    "TypeError",
                    "several hints build_near_host_ip",
                ));
            }
        };
        let cidr = match spec.hint("cidr") {
            None => "/24",
            Some([cidr]) => cidr,
            Some(_) => {
                return Err(NovaException::new(
                    "TypeError",
                    "the hint cidr is not one text",
                ));
            }
        };
        Network::read(&format!("{near}{cidr}"))?.contains(host.host_ip.as_deref())
    }
}
