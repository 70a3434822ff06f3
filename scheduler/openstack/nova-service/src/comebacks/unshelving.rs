//! What Nova asks for when a shelved server is to come back.

use crate::error::NovaServiceError;
use crate::what_if::{GROUP_HINT, instance_group};
use ebbtide_model::ServerId;
use ebbtide_nova::boot::boot_needs;
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova::options::Options;
use ebbtide_nova_db::NovaDb;
use ebbtide_nova_objects::ScheduleRequest;

/// The request for a shelved server, made of the one that Nova has kept (`unshelve_instance` in
/// `nova/conductor/manager.py`, `_from_db_object` in `nova/objects/request_spec.py`): with its
/// image, zone, hints, topology and devices, for any host, and with its group as it is now. `None`:
/// Nova has kept none, or it asks for what only Neutron or Cyborg know.
///
/// # Errors
/// Those of the database.
pub(super) async fn request(
    nova: &NovaDb,
    options: &Options,
    server: ServerId,
) -> Result<Option<RequestSpec>, NovaServiceError> {
    let Some(kept) = nova.request_spec(&server.to_string()).await? else {
        return Ok(None);
    };
    let read = ebbtide_nova_objects::parse(&kept).and_then(|kept| ScheduleRequest::read(&kept));
    let mut spec = match read {
        Ok(read) => read.spec,
        Err(error) => {
            tracing::debug!(%server, "the request that Nova has kept: {error}");
            return Ok(None);
        }
    };
    // What a resource class, a device or a port needs is not kept.
    let image = spec.image.clone().unwrap_or_default();
    match boot_needs(&spec.flavor, &image, options) {
        Ok(needs) => spec.requested_resources = needs.requested_resources,
        Err(error) => {
            tracing::debug!(%server, "the flavor of the request that Nova has kept: {error}");
            return Ok(None);
        }
    }
    (spec.num_instances, spec.ignore_hosts) = (1, None);
    (
        spec.force_hosts,
        spec.force_nodes,
        spec.requested_destination,
    ) = (None, None, None);
    if let Some(group) = spec.instance_group.take() {
        spec.instance_group = instance_group(nova, &group.uuid).await?;
        if spec.instance_group.is_none() {
            // The group was deleted since.
            let hints = spec.scheduler_hints.as_mut();
            hints.and_then(|hints| hints.remove(GROUP_HINT));
        }
    }
    Ok(Some(spec))
}
