//! A row of `services` (`nova/objects/service.py`).

use crate::dialect::{Dialect, RowReader};
use crate::track::Mark;
use ebbtide_nova::model::Service;
use sea_orm::{DbErr, QueryResult};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A service record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NovaService {
    /// Database id.
    pub id: i64,
    pub uuid: Option<String>,
    /// Host; empty in a row that has none.
    pub host: String,
    /// For example `nova-compute`.
    pub binary: String,
    pub version: i64,
    /// What filters look at: disabled, forced down, last seen up.
    pub service: Service,
    /// Microseconds since 1970, UTC.
    pub updated_at: Option<i64>,
    /// Deleted by an operator; only changes report such rows.
    pub deleted: bool,
}

/// What is selected of `services AS s`.
pub(crate) fn columns(dialect: Dialect) -> String {
    [
        dialect.int("s.id"),
        dialect.int("s.deleted"),
        dialect.moment("s.created_at"),
        dialect.moment("s.updated_at"),
        "s.uuid".to_owned(),
        "s.host".to_owned(),
        format!("s.{}", dialect.quoted("binary")),
        dialect.int("s.version"),
        dialect.truth("s.disabled"),
        "s.disabled_reason".to_owned(),
        dialect.truth("s.forced_down"),
        dialect.moment("s.last_seen_up"),
        dialect.moment("s.deleted_at"),
    ]
    .join(", ")
}

pub(crate) fn read(row: &QueryResult) -> Result<(Mark, NovaService), DbErr> {
    let mut columns = RowReader::new(row);
    let id = columns.int()?.unwrap_or_default();
    let deleted = columns.truth()?;
    let created_at = columns.moment()?;
    let updated_at = columns.moment()?;
    let service = NovaService {
        id,
        uuid: columns.text()?,
        host: columns.text()?.unwrap_or_default(),
        binary: columns.text()?.unwrap_or_default(),
        version: columns.int()?.unwrap_or(0),
        service: Service {
            disabled: columns.truth()?,
            disabled_reason: columns.text()?,
            forced_down: columns.truth()?,
            last_seen_up: columns.moment()?,
            created_at,
        },
        updated_at,
        deleted,
    };
    let deleted_at = columns.moment()?;
    let mut hasher = DefaultHasher::new();
    let seen = &service.service;
    (deleted, updated_at, &service.host, service.version).hash(&mut hasher);
    (
        seen.disabled,
        &seen.disabled_reason,
        seen.forced_down,
        seen.last_seen_up,
    )
        .hash(&mut hasher);
    let mark = Mark {
        id,
        at: [created_at, updated_at, deleted_at]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or_default(),
        digest: hasher.finish(),
    };
    Ok((mark, service))
}
