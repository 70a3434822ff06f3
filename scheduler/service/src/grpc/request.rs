//! Conversion of requests from the wire to the region's types.

use super::Api;
use crate::error::ServiceError;
use ebbtide_model::request::MAX_INSTANCES;
use ebbtide_model::{PlacementRequest, ServerId};
use ebbtide_proto::v1;
use ebbtide_runtime::ids;
use std::str::FromStr;

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
        let wire = required("request", wire)?;
        if wire.alternates > MAX_ALTERNATES {
            return Err(ServiceError::Field {
                field: "alternates",
                problem: format!("{} is too many, at most {MAX_ALTERNATES}", wire.alternates),
            });
        }
        let server_ids = server_ids(wire.count, &wire.server_ids)?;
        let (flavor, group) = (wire.flavor, wire.group);
        let resolved = self
            .region_actor
            .read(move |region| -> Result<_, ServiceError> {
                let flavor = region.find_flavor(&flavor)?.clone();
                let group = if group.is_empty() {
                    None
                } else {
                    Some(region.find_group(&group)?.clone())
                };
                Ok((flavor, group))
            })
            .await?;
        let (flavor, group) = resolved?;
        let project_id = optional(wire.project_id).unwrap_or_else(|| DEFAULT_PROJECT.to_owned());
        if let Some(group) = group.as_ref().filter(|g| g.project_id != project_id) {
            return Err(ServiceError::Field {
                field: "group",
                problem: format!("server group {:?} belongs to another project", group.name),
            });
        }
        let request = PlacementRequest {
            server_ids,
            project_id,
            flavor,
            availability_zone: optional(wire.availability_zone),
            group_id: group.map(|g| g.id),
            ignore_hosts: wire.ignore_hosts,
            force_hosts: wire.force_hosts,
            alternates: wire.alternates,
        };
        request.check().map_err(ebbtide_region::RegionError::from)?;
        Ok(request)
    }
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
