//! Notices that are not published yet.

use super::Table;
use crate::row::{EncodedRow, Encoder, Row, key, millis, text};
use ebbtide_model::record::OutboxMessage;
use sea_orm::Value;

pub(crate) static OUTBOX: Table = Table {
    index: 9,
    name: "outbox",
    key: &["id"],
    columns: &["id", "host", "evacuation_id", "created_at", "body"],
};

impl Encoder {
    pub(crate) fn message(&self, message: &OutboxMessage) -> EncodedRow {
        let id = message.id.to_string();
        self.fits(&OUTBOX, &id, message.body.len())?;
        Ok(Row {
            bytes: message.body.len() + 256,
            values: vec![
                text(&id),
                key(&OUTBOX, &id, &message.host)?,
                Value::String(message.evacuation_id.map(|id| id.to_string())),
                millis(message.created_at),
                Value::Bytes(Some(message.body.clone())),
            ],
        })
    }
}
