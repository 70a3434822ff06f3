//! The flavors of the API database with their extra specs, for checks of the whole cloud. Servers
//! carry a copy of theirs, which is what decisions read.

use crate::api::NovaDb;
use crate::error::NovaDbError;
use std::collections::BTreeMap;

/// What it is called in errors.
const READ: &str = "read the flavors";

/// A flavor: its name and what its extra specs say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlavorSpecs {
    /// Id as users give it.
    pub flavorid: String,
    /// Name.
    pub name: String,
    /// Extra specs by key.
    pub extra_specs: BTreeMap<String, String>,
}

impl NovaDb {
    /// All flavors, by database id.
    ///
    /// # Errors
    /// Those of the API database.
    pub async fn flavors(&self) -> Result<Vec<FlavorSpecs>, NovaDbError> {
        let dialect = self.api().dialect();
        let flavors = format!(
            "SELECT {}, f.flavorid, f.name FROM flavors f ORDER BY f.id",
            dialect.int("f.id")
        );
        let specs = format!(
            "SELECT {}, s.{}, s.value FROM flavor_extra_specs s ORDER BY s.id",
            dialect.int("s.flavor_id"),
            dialect.quoted("key")
        );
        let (flavors, specs) = tokio::try_join!(
            self.triples((READ, "flavors"), &flavors, Vec::new()),
            self.triples((READ, "flavor_extra_specs"), &specs, Vec::new())
        )?;
        let mut found: BTreeMap<i64, FlavorSpecs> = BTreeMap::new();
        for (id, flavorid, name) in flavors {
            let flavor = FlavorSpecs {
                flavorid,
                name,
                extra_specs: BTreeMap::new(),
            };
            found.insert(id, flavor);
        }
        for (id, key, value) in specs {
            if let Some(flavor) = found.get_mut(&id) {
                flavor.extra_specs.insert(key, value);
            }
        }
        Ok(found.into_values().collect())
    }
}
