//! The flavors of the API database with their extra specs, for checks of the whole cloud and for
//! what-ifs. Servers carry a copy of theirs, which is what decisions read.

use crate::api::NovaDb;
use crate::dialect::RowReader;
use crate::error::NovaDbError;
use ebbtide_nova::model::{Flavor, OrderedMap};
use sea_orm::{DbErr, QueryResult, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What it is called in errors.
const READ: &str = "read the flavors";

/// A flavor: its name and what its extra specs say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlavorSpecs {
    /// Id as users give it.
    pub flavorid: String,
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

/// A flavor as the API database has it, and who may use it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfferedFlavor {
    /// What requests carry of it.
    pub flavor: Flavor,
    /// nova-api builds no servers of it.
    pub disabled: bool,
    /// `None`: every project may use it.
    pub projects: Option<BTreeSet<String>>,
}

impl OfferedFlavor {
    /// Whether nova-api builds servers of it for a project.
    #[must_use]
    pub fn is_for(&self, project_id: &str) -> bool {
        let projects = self.projects.as_ref();
        !self.disabled && projects.is_none_or(|projects| projects.contains(project_id))
    }
}

impl NovaDb {
    /// The flavors with this id or name, at most one of each. The one with the id comes first.
    ///
    /// # Errors
    /// Those of the API database.
    pub async fn flavors_called(
        &self,
        id_or_name: &str,
    ) -> Result<Vec<OfferedFlavor>, NovaDbError> {
        let mut found = self
            .offered(
                "WHERE f.flavorid = ? OR f.name = ?",
                vec![id_or_name.into(), id_or_name.into()],
            )
            .await?;
        found.sort_by_key(|(_, _, offered)| offered.flavor.flavorid != id_or_name);
        let mut all = Vec::new();
        for (id, is_public, mut offered) in found {
            offered.flavor.extra_specs = Some(self.extra_specs(id).await?);
            if !is_public {
                offered.projects = Some(self.flavor_projects(id).await?);
            }
            all.push(offered);
        }
        Ok(all)
    }

    /// All flavors of which nova-api builds servers, with extra specs and who may use them, by
    /// database id.
    ///
    /// # Errors
    /// Those of the API database.
    pub async fn flavors_for_sale(&self) -> Result<Vec<OfferedFlavor>, NovaDbError> {
        let dialect = self.api().dialect();
        let specs = format!(
            "SELECT {}, s.{}, s.value FROM flavor_extra_specs s ORDER BY s.id",
            dialect.int("s.flavor_id"),
            dialect.quoted("key")
        );
        let projects = format!(
            "SELECT {}, p.project_id, p.project_id FROM flavor_projects p",
            dialect.int("p.flavor_id"),
        );
        let (found, specs, projects) = tokio::try_join!(
            self.offered("ORDER BY f.id", Vec::new()),
            self.triples((READ, "flavor_extra_specs"), &specs, Vec::new()),
            self.triples((READ, "flavor_projects"), &projects, Vec::new())
        )?;
        let mut of_flavor: BTreeMap<i64, Vec<(String, String)>> = BTreeMap::new();
        for (id, key, value) in specs {
            of_flavor.entry(id).or_default().push((key, value));
        }
        let mut all = Vec::new();
        for (id, is_public, mut offered) in found.into_iter().filter(|(.., one)| !one.disabled) {
            let specs = of_flavor.remove(&id).unwrap_or_default();
            offered.flavor.extra_specs = Some(specs.into_iter().collect());
            if !is_public {
                let own = projects.iter().filter(|(flavor, ..)| *flavor == id);
                offered.projects = Some(own.map(|(_, project, _)| project.clone()).collect());
            }
            all.push(offered);
        }
        Ok(all)
    }

    /// All flavors of which nova-api builds servers, with their amounts and without extra specs, by
    /// database id.
    ///
    /// # Errors
    /// Those of the API database.
    pub async fn flavors_offered(&self) -> Result<Vec<Flavor>, NovaDbError> {
        let found = self.offered("ORDER BY f.id", Vec::new()).await?;
        let open = found.into_iter().filter(|(_, _, one)| !one.disabled);
        Ok(open.map(|(_, _, one)| one.flavor).collect())
    }

    /// Database id, whether it is public, and the flavor without extra specs and projects.
    async fn offered(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<(i64, bool, OfferedFlavor)>, NovaDbError> {
        let api = self.api();
        let dialect = api.dialect();
        let numbers = [
            "id",
            "vcpus",
            "memory_mb",
            "root_gb",
            "ephemeral_gb",
            "swap",
        ];
        let numbers = numbers.map(|column| dialect.int(&format!("f.{column}")));
        let flavors = format!(
            "SELECT {}, f.flavorid, f.name, {}, {} FROM flavors f {condition}",
            numbers.join(", "),
            dialect.truth("f.disabled"),
            dialect.truth("f.is_public"),
        );
        let rows = api.rows(READ, &flavors, values).await?;
        let read = rows.iter().map(offered);
        read.map(|row| row.map_err(|error| api.unreadable("flavors", &error)))
            .collect()
    }

    /// In the order in which Nova's request has them.
    async fn extra_specs(&self, flavor: i64) -> Result<OrderedMap<String>, NovaDbError> {
        let dialect = self.api().dialect();
        let specs = format!(
            "SELECT {}, s.{}, s.value FROM flavor_extra_specs s WHERE s.flavor_id = ? ORDER BY s.id",
            dialect.int("s.flavor_id"),
            dialect.quoted("key")
        );
        let specs = self.triples((READ, "flavor_extra_specs"), &specs, vec![flavor.into()]);
        Ok(specs
            .await?
            .into_iter()
            .map(|(_, key, value)| (key, value))
            .collect())
    }

    async fn flavor_projects(&self, flavor: i64) -> Result<BTreeSet<String>, NovaDbError> {
        let projects = format!(
            "SELECT {}, p.project_id, p.project_id FROM flavor_projects p WHERE p.flavor_id = ?",
            self.api().dialect().int("p.flavor_id"),
        );
        let projects = self.triples((READ, "flavor_projects"), &projects, vec![flavor.into()]);
        Ok(projects
            .await?
            .into_iter()
            .map(|(_, project, _)| project)
            .collect())
    }
}

/// Database id, whether it is public, and the rest without extra specs and projects.
fn offered(row: &QueryResult) -> Result<(i64, bool, OfferedFlavor), DbErr> {
    let mut columns = RowReader::new(row);
    let mut number = || Ok::<_, DbErr>(columns.int()?.unwrap_or_default());
    let (id, vcpus, memory_mb) = (number()?, number()?, number()?);
    let (root_gb, ephemeral_gb, swap) = (number()?, number()?, number()?);
    let flavor = Flavor {
        flavorid: columns.text()?.unwrap_or_default(),
        name: columns.text()?.unwrap_or_default(),
        vcpus,
        memory_mb,
        root_gb,
        ephemeral_gb,
        swap,
        extra_specs: None,
    };
    let (disabled, is_public) = (columns.truth()?, columns.truth()?);
    let offered = OfferedFlavor {
        flavor,
        disabled,
        projects: None,
    };
    Ok((id, is_public, offered))
}
