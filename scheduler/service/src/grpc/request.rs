//! Conversion of requests from the wire to the region's types.

use crate::cloud::{Api, UnresolvedRequest};
use crate::error::ServiceError;
use ebbtide_model::request::MAX_INSTANCES;
use ebbtide_model::{PlacementRequest, ServerId};
use ebbtide_nova_service::{WhatIf, WhatIfImage};
use ebbtide_proto::v1;
use ebbtide_runtime::ids;
use std::str::FromStr;

/// How request ids of OpenStack's services begin.
pub(super) const REQUEST_ID: &str = "req-";
/// The project of requests without one.
const DEFAULT_PROJECT: &str = "default";
/// Most alternates in a request. Nova's `max_attempts` is small, too.
const MAX_ALTERNATES: u32 = 100;

/// The value of a required field.
pub(super) fn required<T>(field: &'static str, value: Option<T>) -> Result<T, ServiceError> {
    value.ok_or_else(|| ServiceError::Field {
        field,
        problem: "is missing".to_owned(),
    })
}

/// An empty string means `None`.
pub(super) fn optional(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// An identifier or a keyword; an empty string means `None`.
pub(super) fn parsed<T: FromStr>(field: &'static str, text: &str) -> Result<Option<T>, ServiceError>
where
    T::Err: std::fmt::Display,
{
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|e: T::Err| ServiceError::Field {
            field,
            problem: e.to_string(),
        })
}

/// Number of rows: `default` for 0, at most `most`.
pub(super) fn limit(asked: u32, default: u32, most: u32) -> u32 {
    if asked == 0 { default } else { asked.min(most) }
}

impl Api {
    /// Resolves names, and creates the identifiers that the caller has not set.
    pub(super) async fn placement_request(
        &self,
        wire: Option<v1::PlacementRequest>,
    ) -> Result<PlacementRequest, ServiceError> {
        let unresolved = unresolved(wire)?;
        let (flavor, group) = (
            &unresolved.wanted.flavor,
            unresolved.wanted.group.as_deref(),
        );
        let resolved = self
            .cloud
            .flavor_and_group(flavor, group.unwrap_or_default());
        let (flavor, group) = resolved.await?;
        unresolved.resolved(flavor, group)
    }
}

/// A request for servers, with the identifiers that the caller has not set.
fn unresolved(wire: Option<v1::PlacementRequest>) -> Result<UnresolvedRequest, ServiceError> {
    let wire = required("request", wire)?;
    if wire.alternates > MAX_ALTERNATES {
        return Err(ServiceError::Field {
            field: "alternates",
            problem: format!("{} is too many, at most {MAX_ALTERNATES}", wire.alternates),
        });
    }
    let wanted = WhatIf {
        servers: server_ids(wire.count, &wire.server_ids)?,
        project_id: optional(wire.project_id).unwrap_or_else(|| DEFAULT_PROJECT.to_owned()),
        flavor: wire.flavor,
        availability_zone: optional(wire.availability_zone),
        group: optional(wire.group),
        ignore_hosts: wire.ignore_hosts,
        force_hosts: wire.force_hosts,
        ..WhatIf::default()
    };
    Ok(UnresolvedRequest {
        wanted,
        alternates: wire.alternates,
    })
}

pub(super) fn what_if(wire: v1::WhatIfRequest) -> Result<UnresolvedRequest, ServiceError> {
    let mut unresolved = unresolved(wire.request)?;
    let wanted = &mut unresolved.wanted;
    wanted.image = wire.image.map(|image| WhatIfImage {
        id: image.id,
        disk_format: image.disk_format,
        properties: image.properties.into_iter().collect(),
    });
    wanted.boots_from_volume = wire.boot_from_volume;
    let hints = wire.scheduler_hints.into_iter();
    wanted.hints = hints.map(|(name, hint)| (name, hint.values)).collect();
    Ok(unresolved)
}

fn server_ids(count: u32, given: &[String]) -> Result<Vec<ServerId>, ServiceError> {
    let count = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
    if count > MAX_INSTANCES {
        let problem = format!("{count} is too many, at most {MAX_INSTANCES}");
        return Err(ServiceError::Field {
            field: "count",
            problem,
        });
    }
    if given.is_empty() {
        return Ok((0..count).map(|_| ServerId(ids::new())).collect());
    }
    if given.len() != count {
        let problem = format!(
            "{} ids for {count} instances; give none, or one for each",
            given.len()
        );
        return Err(ServiceError::Field {
            field: "server_ids",
            problem,
        });
    }
    given
        .iter()
        .map(|id| {
            id.parse().map_err(|_| ServiceError::Field {
                field: "server_ids",
                problem: format!("{:?} is not a UUID", ebbtide_model::names::shorten(id)),
            })
        })
        .collect()
}
