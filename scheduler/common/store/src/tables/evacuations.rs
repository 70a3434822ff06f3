//! Evacuations.

use super::Table;
use crate::row::{EncodedRow, Encoder, finite, key, millis, text};
use ebbtide_model::{Evacuation, Timestamp};
use sea_orm::Value;

pub(crate) static EVACUATIONS: Table = Table {
    index: 8,
    name: "evacuations",
    key: &["id"],
    columns: &[
        "id",
        "victim_id",
        "project_id",
        "preemptor_id",
        "host",
        "state",
        "created_at",
        "final_at",
        "record",
    ],
};

impl Encoder {
    pub(crate) fn evacuation(&self, evacuation: &Evacuation) -> EncodedRow {
        let id = evacuation.id.to_string();
        finite(&EVACUATIONS, &id, "cost", evacuation.cost)?;
        let final_at = evacuation
            .state
            .is_final()
            .then(|| evacuation.ended_at.unwrap_or(evacuation.claimed_at));
        let columns = vec![
            text(&id),
            text(&evacuation.victim_id.to_string()),
            key(&EVACUATIONS, &id, &evacuation.victim_project_id)?,
            // The column takes no NULL.
            text(
                &evacuation
                    .preemptor_id
                    .map(|id| id.to_string())
                    .unwrap_or_default(),
            ),
            key(&EVACUATIONS, &id, &evacuation.host)?,
            text(evacuation.state.as_str()),
            millis(evacuation.claimed_at),
            Value::BigInt(final_at.map(Timestamp::as_millis)),
        ];
        self.with_record(&EVACUATIONS, &id, columns, evacuation)
    }
}
