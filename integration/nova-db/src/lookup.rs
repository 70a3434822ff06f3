//! What the API database knows beside the cells: aggregates, host mappings, server groups.

use crate::api::NovaDb;
use crate::detail::group_uuids;
use crate::dialect::{RowReader, second};
use crate::error::NovaDbError;
use ebbtide_nova::model::Aggregate;
use sea_orm::{DbErr, Value};
use std::collections::{BTreeMap, HashMap};

/// What reading aggregates is called in errors.
const READ: &str = "read the aggregates";
/// Most server groups in one statement.
const GROUPS_AT_ONCE: usize = 200;

/// Which cell a host is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMapping {
    pub host: String,
    pub cell_uuid: String,
}

/// A server group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    pub uuid: String,
    pub name: String,
    /// Who owns it.
    pub project_id: String,
    /// For example `anti-affinity`.
    pub policy: Option<String>,
    /// Rules of the policy, as JSON text.
    pub rules: Option<String>,
    /// UUIDs of its instances, deleted ones included, as Nova keeps them.
    pub members: Vec<String>,
}

impl NovaDb {
    /// All aggregates with their hosts and metadata, by id.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn aggregates(&self) -> Result<Vec<Aggregate>, NovaDbError> {
        self.aggregates_where("", Vec::new()).await
    }

    /// The aggregates of a host.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn aggregates_of_host(&self, host: &str) -> Result<Vec<Aggregate>, NovaDbError> {
        self.aggregates_where(
            "WHERE {} IN (SELECT h.aggregate_id FROM aggregate_hosts h WHERE h.host = ?)",
            vec![host.into()],
        )
        .await
    }

    /// `condition` holds `{}` where the aggregate's id goes.
    async fn aggregates_where(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<Aggregate>, NovaDbError> {
        let api = self.api();
        let dialect = api.dialect();
        let on = |column: &str| condition.replace("{}", column);
        let aggregates = format!(
            "SELECT {}, a.uuid, a.name FROM aggregates a {} ORDER BY a.id",
            dialect.int("a.id"),
            on("a.id")
        );
        let hosts = format!(
            "SELECT {}, m.host, m.host FROM aggregate_hosts m {} ORDER BY m.id",
            dialect.int("m.aggregate_id"),
            on("m.aggregate_id")
        );
        let metadata = format!(
            "SELECT {}, m.{}, m.value FROM aggregate_metadata m {} ORDER BY m.id",
            dialect.int("m.aggregate_id"),
            dialect.quoted("key"),
            on("m.aggregate_id")
        );
        let (rows, hosts, metadata) = tokio::try_join!(
            self.triples((READ, "aggregates"), &aggregates, values.clone()),
            self.triples((READ, "aggregate_hosts"), &hosts, values.clone()),
            self.triples((READ, "aggregate_metadata"), &metadata, values)
        )?;
        let mut aggregates: BTreeMap<i64, Aggregate> = BTreeMap::new();
        for (id, uuid, name) in rows {
            let aggregate = Aggregate {
                id,
                uuid,
                name,
                hosts: Vec::new(),
                metadata: BTreeMap::new(),
            };
            aggregates.insert(id, aggregate);
        }
        for (id, host, _) in hosts {
            if let Some(aggregate) = aggregates.get_mut(&id) {
                aggregate.hosts.push(host);
            }
        }
        for (id, key, value) in metadata {
            if let Some(aggregate) = aggregates.get_mut(&id) {
                aggregate.metadata.insert(key, value);
            }
        }
        Ok(aggregates.into_values().collect())
    }

    /// An id and two texts of each row of `table`.
    pub(crate) async fn triples(
        &self,
        (operation, table): (&'static str, &'static str),
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<(i64, String, String)>, NovaDbError> {
        let api = self.api();
        let rows = api.rows(operation, sql, values).await?;
        rows.iter()
            .map(|row| {
                let mut columns = RowReader::new(row);
                let mut read = || {
                    Ok((
                        columns.int()?.unwrap_or_default(),
                        columns.text()?.unwrap_or_default(),
                        columns.text()?.unwrap_or_default(),
                    ))
                };
                read().map_err(|error: DbErr| api.unreadable(table, &error))
            })
            .collect()
    }

    /// Which cell a host is in.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn host_mapping(&self, host: &str) -> Result<Option<HostMapping>, NovaDbError> {
        let found = self
            .mappings_where("WHERE m.host = ?", vec![host.into()])
            .await?;
        Ok(found.into_iter().next())
    }

    /// All hosts.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn host_mappings(&self) -> Result<Vec<HostMapping>, NovaDbError> {
        self.mappings_where("", Vec::new()).await
    }

    /// Hosts that were mapped, or mapped anew, since (microseconds since 1970, inclusive by whole
    /// seconds).
    ///
    /// # Errors
    /// Those of the database.
    pub async fn host_mappings_changed(&self, since: i64) -> Result<Vec<HostMapping>, NovaDbError> {
        let at = self.api().dialect().at();
        let condition = format!("WHERE m.created_at >= {at} OR m.updated_at >= {at}");
        let since = Value::from(second(since));
        self.mappings_where(&condition, vec![since.clone(), since])
            .await
    }

    async fn mappings_where(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<HostMapping>, NovaDbError> {
        let api = self.api();
        let sql = format!(
            "SELECT m.host, c.uuid FROM host_mappings m JOIN cell_mappings c ON c.id = m.cell_id {condition} ORDER BY m.id"
        );
        let rows = api.rows("read host mappings", &sql, values).await?;
        rows.iter()
            .map(|row| {
                let mut columns = RowReader::new(row);
                let mut read = || {
                    Ok(HostMapping {
                        host: columns.text()?.unwrap_or_default(),
                        cell_uuid: columns.text()?.unwrap_or_default(),
                    })
                };
                read().map_err(|error: DbErr| api.unreadable("host_mappings", &error))
            })
            .collect()
    }

    /// A server group by its UUID.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn group(&self, uuid: &str) -> Result<Option<Group>, NovaDbError> {
        let api = self.api();
        let dialect = api.dialect();
        let of_group = |table: &str, columns: &str| {
            format!(
                "SELECT {columns} FROM {table} m JOIN instance_groups g ON g.id = m.group_id WHERE g.uuid = ? ORDER BY m.id"
            )
        };
        let group = format!(
            "SELECT {}, g.name, g.project_id FROM instance_groups g WHERE g.uuid = ?",
            dialect.int("g.id")
        );
        let policies = of_group("instance_group_policy", "m.policy, m.rules");
        let members = of_group("instance_group_member", "m.instance_uuid, m.instance_uuid");
        let (found, policies, members) = tokio::try_join!(
            self.triples((READ, "instance_groups"), &group, vec![uuid.into()]),
            self.pairs_of_groups(&policies, vec![uuid.into()]),
            self.pairs_of_groups(&members, vec![uuid.into()])
        )?;
        let Some((_, name, project_id)) = found.into_iter().next() else {
            return Ok(None);
        };
        // Of several policies Nova takes the first.
        let (policy, rules) = policies.into_iter().next().unwrap_or_default();
        Ok(Some(Group {
            uuid: uuid.to_owned(),
            name,
            project_id,
            policy,
            rules,
            members: members.into_iter().filter_map(|(uuid, _)| uuid).collect(),
        }))
    }

    /// All server groups without their members, by id.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn groups(&self) -> Result<Vec<Group>, NovaDbError> {
        let api = self.api();
        // Of several policies Nova takes the first.
        let sql = "SELECT g.uuid, g.name, g.project_id, m.policy, m.rules FROM instance_groups g \
             LEFT JOIN instance_group_policy m ON m.group_id = g.id ORDER BY g.id, m.id";
        let rows = api.rows("read server groups", sql, Vec::new()).await?;
        let mut groups: Vec<Group> = Vec::new();
        for row in &rows {
            let mut columns = RowReader::new(row);
            let mut read = || {
                Ok(Group {
                    uuid: columns.text()?.unwrap_or_default(),
                    name: columns.text()?.unwrap_or_default(),
                    project_id: columns.text()?.unwrap_or_default(),
                    policy: columns.text()?,
                    rules: columns.text()?,
                    members: Vec::new(),
                })
            };
            let group = read().map_err(|e: DbErr| api.unreadable("instance_groups", &e))?;
            if groups.last().is_none_or(|last| last.uuid != group.uuid) {
                groups.push(group);
            }
        }
        Ok(groups)
    }

    /// The members of several server groups, deleted ones included: each with its group.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn members_of_groups(
        &self,
        groups: &[String],
    ) -> Result<Vec<(String, String)>, NovaDbError> {
        let mut members = Vec::new();
        for groups in groups.chunks(GROUPS_AT_ONCE) {
            let sql = format!(
                "SELECT m.instance_uuid, g.uuid FROM instance_group_member m \
                 JOIN instance_groups g ON g.id = m.group_id WHERE g.uuid IN ({})",
                vec!["?"; groups.len()].join(", ")
            );
            let values = groups.iter().map(|uuid| uuid.as_str().into()).collect();
            let found = self.pairs_of_groups(&sql, values).await?;
            members.extend(found.into_iter().filter_map(|(m, g)| m.zip(g)));
        }
        Ok(members)
    }

    async fn pairs_of_groups(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<(Option<String>, Option<String>)>, NovaDbError> {
        let api = self.api();
        let rows = api.rows("read server groups", sql, values).await?;
        rows.iter()
            .map(|row| {
                let mut columns = RowReader::new(row);
                let mut read = || Ok((columns.text()?, columns.text()?));
                read().map_err(|error: DbErr| api.unreadable("instance_groups", &error))
            })
            .collect()
    }

    /// The server group of an instance.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn group_of(&self, instance_uuid: &str) -> Result<Option<Group>, NovaDbError> {
        let groups = self.group_uuids(&[instance_uuid.to_owned()]).await?;
        match groups.get(instance_uuid) {
            Some(uuid) => self.group(uuid).await,
            None => Ok(None),
        }
    }

    /// UUIDs of the groups of several instances, by instance. Instances without one are not in it.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn group_uuids(
        &self,
        instance_uuids: &[String],
    ) -> Result<HashMap<String, String>, NovaDbError> {
        group_uuids(self.api(), instance_uuids).await
    }
}
