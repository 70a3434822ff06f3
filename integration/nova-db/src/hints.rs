//! Requests and their scheduler hints, as Nova keeps them for later moves of a server.

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
    /// The request of a server as JSON (`request_specs.spec`); `None`: Nova has kept none.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn request_spec(&self, server: &str) -> Result<Option<String>, NovaDbError> {
        let specs = self.request_specs(&[server.to_owned()]).await?;
        Ok(specs.into_iter().next().map(|(_, spec)| spec))
    }

    /// The values of a scheduler hint, by server. Servers without the hint are left out.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn hints_of(
        &self,
        name: &str,
        servers: &[String],
    ) -> Result<HashMap<String, Vec<String>>, NovaDbError> {
        let specs = self.request_specs(servers).await?;
        let hints = specs
            .into_iter()
            .map(|(server, spec)| (server, hint(&spec, name)));
        Ok(hints.filter(|(_, values)| !values.is_empty()).collect())
    }

    /// Servers with their requests, as far as Nova has kept them.
    async fn request_specs(
        &self,
        servers: &[String],
    ) -> Result<Vec<(String, String)>, NovaDbError> {
        let api = self.api();
        let mut specs = Vec::new();
        for servers in servers.chunks(SERVERS_AT_ONCE) {
            let sql = format!(
                "SELECT r.instance_uuid, r.spec FROM request_specs r WHERE r.instance_uuid IN ({})",
                vec!["?"; servers.len()].join(", ")
            );
            let values: Vec<Value> = servers.iter().map(|uuid| uuid.as_str().into()).collect();
            for row in api.rows("read request specs", &sql, values).await? {
                let mut columns = RowReader::new(&row);
                let mut read = || Ok((columns.text()?, columns.text()?));
                let (uuid, spec): (Option<String>, Option<String>) =
                    read().map_err(|error: DbErr| api.unreadable("request_specs", &error))?;
                specs.extend(uuid.zip(spec));
            }
        }
        Ok(specs)
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
