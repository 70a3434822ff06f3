//! Scheduler hints, as Nova keeps them for later moves of a server.

use crate::api::NovaDb;
use crate::dialect::RowReader;
use crate::error::NovaDbError;
use sea_orm::{DbErr, Value};
use serde_json::Value as Json;
use std::collections::HashMap;

/// Most servers in one statement.
const SERVERS_AT_ONCE: usize = 200;

/// The values of a hint in `request_specs.spec` (`nova/objects/request_spec.py`), which has the
/// hints as lists of texts. None if it is not there.
fn hint(spec: &str, name: &str) -> Vec<String> {
    let spec: Json = serde_json::from_str(spec).unwrap_or_default();
    let values = spec["nova_object.data"]["scheduler_hints"][name].as_array();
    let texts = values.into_iter().flatten();
    texts
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

impl NovaDb {
    /// The values of a scheduler hint, by server. Servers without the hint are left out.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn hints_of(
        &self,
        name: &str,
        servers: &[String],
    ) -> Result<HashMap<String, Vec<String>>, NovaDbError> {
        let api = self.api();
        let mut hints = HashMap::new();
        for servers in servers.chunks(SERVERS_AT_ONCE) {
            let sql = format!(
                "SELECT r.instance_uuid, r.spec FROM request_specs r WHERE r.instance_uuid IN ({})",
                vec!["?"; servers.len()].join(", ")
            );
            let values: Vec<Value> = servers.iter().map(|uuid| uuid.as_str().into()).collect();
            for row in api.rows("read scheduler hints", &sql, values).await? {
                let mut columns = RowReader::new(&row);
                let mut read = || Ok((columns.text()?, columns.text()?));
                let (uuid, spec) =
                    read().map_err(|error: DbErr| api.unreadable("request_specs", &error))?;
                let (Some(uuid), Some(spec)): (Option<String>, Option<String>) = (uuid, spec)
                else {
                    continue;
                };
                let values = hint(&spec, name);
                if !values.is_empty() {
                    hints.insert(uuid, values);
                }
            }
        }
        Ok(hints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_a_list_of_texts() {
        let spec = r#"{"nova_object.name": "RequestSpec", "nova_object.data":
            {"scheduler_hints": {"ebbtide:max_price": ["0.03"], "group": ["g"]}}}"#;
        assert_eq!(hint(spec, "ebbtide:max_price"), ["0.03"]);
        assert!(hint(spec, "same_host").is_empty());
        for odd in [
            "",
            "{}",
            "no JSON",
            r#"{"nova_object.data": {"scheduler_hints": null}}"#,
        ] {
            assert!(hint(odd, "group").is_empty(), "{odd}");
        }
    }
}
