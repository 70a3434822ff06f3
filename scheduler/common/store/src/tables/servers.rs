//! Servers.

use super::Table;
use crate::row::{EncodedRow, Encoder, key, millis, text};
use ebbtide_model::{Server, Timestamp};
use sea_orm::Value;

pub(crate) static SERVERS: Table = Table {
    index: 5,
    name: "servers",
    key: &["id"],
    columns: &[
        "id",
        "project_id",
        "name",
        "host",
        "status",
        "created_at",
        "gone_at",
        "record",
    ],
};

impl Encoder {
    pub(crate) fn server(&self, server: &Server) -> EncodedRow {
        let id = server.id.to_string();
        let gone_at = server
            .status
            .is_gone()
            .then(|| server.ended_at.unwrap_or(server.created_at));
        let host = match &server.host {
            Some(host) => key(&SERVERS, &id, host)?,
            None => Value::String(None),
        };
        let columns = vec![
            text(&id),
            key(&SERVERS, &id, &server.project_id)?,
            key(&SERVERS, &id, &server.name)?,
            host,
            text(server.status.as_str()),
            millis(server.created_at),
            Value::BigInt(gone_at.map(Timestamp::as_millis)),
        ];
        self.with_record(&SERVERS, &id, columns, server)
    }
}
