//! A cell's database.

use crate::dialect::second;
use crate::error::NovaDbError;
use crate::pool::DatabasePool;
use crate::row::compute::{self, ComputeNode};
use crate::row::instance::{self, Flavors, Instance};
use crate::row::service::{self, NovaService};
use crate::track::Mark;
use ebbtide_nova::hosts::Ratios;
use sea_orm::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Most values in one list of a statement.
const CHUNK: usize = 500;

/// What is read of instances beside their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstanceDetail {
    /// Image properties, which only ImagePropertiesWeigher looks at: a dozen rows for each
    /// instance.
    pub image_properties: bool,
}

/// A cell's database. Cheap to clone. Times are microseconds since 1970, UTC; "since" counts by
/// whole seconds and includes the second it falls in, because Nova's DATETIME columns have no
/// fractions.
#[derive(Clone)]
pub struct CellDb {
    pub(crate) uuid: String,
    pub(crate) pool: DatabasePool,
    /// Server groups are in the API database.
    pub(crate) api: DatabasePool,
    pub(crate) ratios: Ratios,
    pub(crate) flavors: Arc<Flavors>,
    pub(crate) texts: Arc<CellStatements>,
}

/// The parts of statements that depend on the kind of database, made once.
pub(crate) struct CellStatements {
    computes: String,
    services: String,
    instances: String,
}

/// Instances that were read.
#[derive(Debug, Default)]
pub(crate) struct ReadInstances {
    /// The marks of all rows.
    pub(crate) marks: Vec<Mark>,
    /// Those that were wanted.
    pub(crate) news: Vec<Instance>,
    /// The marks of those.
    pub(crate) news_marks: Vec<Mark>,
}

/// Which services to read.
pub(crate) enum Services<'a> {
    /// All that beat since.
    Beats,
    /// Those that an operator touched since: now disabled, forced down, deleted or new, or among
    /// these that were.
    States(&'a [i64]),
}

impl fmt::Debug for CellDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CellDb({}, {:?})", self.uuid, self.pool)
    }
}

impl CellDb {
    pub(crate) fn new(uuid: &str, pool: DatabasePool, api: DatabasePool, ratios: Ratios) -> Self {
        let dialect = pool.dialect();
        Self {
            uuid: uuid.to_owned(),
            api,
            ratios,
            flavors: Arc::default(),
            texts: Arc::new(CellStatements {
                computes: format!("SELECT {} FROM compute_nodes cn", compute::columns(dialect)),
                services: format!(
                    "SELECT {} FROM services s WHERE s.{} = 'nova-compute'",
                    service::columns(dialect),
                    dialect.quoted("binary")
                ),
                instances: format!("SELECT {}", instance::columns(dialect)),
            }),
            pool,
        }
    }

    /// UUID of the cell.
    #[must_use]
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    /// For people: `cell NAME`.
    #[must_use]
    pub fn label(&self) -> &str {
        self.pool.label()
    }

    /// Asks the database whether it is there.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn ping(&self) -> Result<(), NovaDbError> {
        self.pool
            .rows("answer", "SELECT 1", Vec::new())
            .await
            .map(drop)
    }

    /// All compute nodes.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn compute_nodes(&self) -> Result<Vec<ComputeNode>, NovaDbError> {
        let sql = format!(
            "{} WHERE cn.deleted = 0 ORDER BY cn.id",
            self.texts.computes
        );
        Ok(self.computes(&sql, Vec::new(), |_| true).await?.1)
    }

    /// The compute nodes of one host: after a conflict.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn compute_nodes_of_host(&self, host: &str) -> Result<Vec<ComputeNode>, NovaDbError> {
        let sql = format!(
            "{} WHERE cn.deleted = 0 AND cn.host = ? ORDER BY cn.id",
            self.texts.computes
        );
        Ok(self.computes(&sql, vec![host.into()], |_| true).await?.1)
    }

    /// Compute nodes that were made, changed or deleted since.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn compute_nodes_changed(&self, since: i64) -> Result<Vec<ComputeNode>, NovaDbError> {
        Ok(self.computes_since(since, |_| true).await?.1)
    }

    /// As [`Self::compute_nodes_changed`], with the marks of all and only those rows that `wanted`
    /// wants: no JSON of the others is read.
    pub(crate) async fn computes_since(
        &self,
        since: i64,
        wanted: impl Fn(&Mark) -> bool + Send,
    ) -> Result<(Vec<Mark>, Vec<ComputeNode>), NovaDbError> {
        let at = self.pool.dialect().at();
        let sql = format!(
            "{} WHERE cn.updated_at >= {at} OR cn.created_at >= {at} OR cn.deleted_at >= {at} ORDER BY cn.id",
            self.texts.computes
        );
        self.computes(&sql, vec![Value::from(second(since)); 3], wanted)
            .await
    }

    pub(crate) async fn all_computes(&self) -> Result<(Vec<Mark>, Vec<ComputeNode>), NovaDbError> {
        let sql = format!(
            "{} WHERE cn.deleted = 0 ORDER BY cn.id",
            self.texts.computes
        );
        self.computes(&sql, Vec::new(), |_| true).await
    }

    async fn computes(
        &self,
        sql: &str,
        values: Vec<Value>,
        wanted: impl Fn(&Mark) -> bool + Send,
    ) -> Result<(Vec<Mark>, Vec<ComputeNode>), NovaDbError> {
        let rows = self.pool.rows("read compute nodes", sql, values).await?;
        let mut marks = Vec::with_capacity(rows.len());
        let mut nodes = Vec::new();
        for row in &rows {
            let raw = compute::ComputeColumns::read(row)
                .map_err(|error| self.pool.unreadable("compute_nodes", &error))?;
            let mark = raw.mark();
            if wanted(&mark) {
                nodes.push(raw.take_in(&self.ratios));
            }
            marks.push(mark);
        }
        Ok((marks, nodes))
    }

    /// All services `nova-compute`.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn services(&self) -> Result<Vec<NovaService>, NovaDbError> {
        let (_, services) = self.all_services().await?;
        Ok(services)
    }

    pub(crate) async fn all_services(&self) -> Result<(Vec<Mark>, Vec<NovaService>), NovaDbError> {
        let sql = format!("{} AND s.deleted = 0 ORDER BY s.id", self.texts.services);
        Ok(self
            .read_services(&sql, Vec::new())
            .await?
            .into_iter()
            .unzip())
    }

    /// Hosts whose `nova-compute` an operator has deleted and that have none now, by name. Nova
    /// keeps their rows until the operator archives them.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn removed_hosts(&self) -> Result<Vec<String>, NovaDbError> {
        let sql = format!("{} ORDER BY s.id", self.texts.services);
        let rows = self.read_services(&sql, Vec::new()).await?;
        let (mut live, mut removed) = (BTreeSet::new(), BTreeSet::new());
        for (_, service) in rows {
            match service.deleted {
                true => removed.insert(service.host),
                false => live.insert(service.host),
            };
        }
        Ok(removed.difference(&live).cloned().collect())
    }

    /// Services `nova-compute` that were made, changed (each does it at every heartbeat) or deleted
    /// since.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn services_changed(&self, since: i64) -> Result<Vec<NovaService>, NovaDbError> {
        let rows = self.services_since(since, Services::Beats).await?;
        Ok(rows.into_iter().map(|(_, service)| service).collect())
    }

    pub(crate) async fn services_since(
        &self,
        since: i64,
        which: Services<'_>,
    ) -> Result<Vec<(Mark, NovaService)>, NovaDbError> {
        let dialect = self.pool.dialect();
        let at = dialect.at();
        let mut sql = format!(
            "{} AND (s.updated_at >= {at} OR s.created_at >= {at} OR s.deleted_at >= {at})",
            self.texts.services
        );
        let mut values = vec![Value::from(second(since)); 3];
        if let Services::States(ids) = which {
            // Whole numbers of ours, so that they can stand in the text: a placeholder each would
            // make a new text for each number.
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let among = if ids.is_empty() {
                String::new()
            } else {
                format!(" OR s.id IN ({})", ids.join(", "))
            };
            sql.push_str(&format!(
                " AND ({} OR {} OR s.deleted <> 0 OR s.created_at >= {at}{among})",
                dialect.is_true("s.disabled"),
                dialect.is_true("s.forced_down"),
            ));
            values.push(second(since).into());
        }
        self.read_services(&sql, values).await
    }

    async fn read_services(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<(Mark, NovaService)>, NovaDbError> {
        let rows = self.pool.rows("read services", sql, values).await?;
        rows.iter()
            .map(|row| service::read(row).map_err(|error| self.pool.unreadable("services", &error)))
            .collect()
    }

    /// All live instances, in batches: 100,000 are never in memory twice. Returns how many there
    /// were.
    ///
    /// # Errors
    /// Those of the database; batches that were handed out stay valid.
    pub async fn instances(
        &self,
        detail: InstanceDetail,
        mut batch: impl FnMut(Vec<Instance>) + Send,
    ) -> Result<usize, NovaDbError> {
        self.each_instance(detail, |_, instances| batch(instances))
            .await
    }

    pub(crate) async fn each_instance(
        &self,
        detail: InstanceDetail,
        mut batch: impl FnMut(Vec<Mark>, Vec<Instance>) + Send,
    ) -> Result<usize, NovaDbError> {
        // Read the ids first, from the index by (deleted, created_at): the table may hold millions
        // of deleted rows that the operator has not archived.
        let sql = format!(
            "SELECT {} FROM instances i WHERE i.deleted = 0",
            self.pool.dialect().int("i.id")
        );
        let mut ids = Vec::new();
        for row in &self.pool.rows("read instances", &sql, Vec::new()).await? {
            let id: i64 = row
                .try_get_by_index(0)
                .map_err(|error| self.pool.unreadable("instances", &error))?;
            ids.push(id);
        }
        ids.sort_unstable();
        let mut count = 0;
        for ids in ids.chunks(CHUNK) {
            let (sql, values) = self.instances_where("i.id", ids.iter().copied().map(Value::from));
            let read = self.read_instances(&sql, values, detail, |_| true).await?;
            let live: Vec<Instance> = read.news.into_iter().filter(|i| !i.deleted).collect();
            count += live.len();
            batch(read.marks, live);
        }
        Ok(count)
    }

    /// Instances that were made or changed since `since`, and those of `watch` in any case.
    /// Deleting an instance does not touch `updated_at`, so the caller must watch an instance on
    /// its way out until it is gone. The answer omits instances of `watch` that no longer exist.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instances_changed(
        &self,
        since: i64,
        watch: &[String],
        detail: InstanceDetail,
    ) -> Result<Vec<Instance>, NovaDbError> {
        Ok(self
            .instances_since(since, watch, detail, |_| true)
            .await?
            .news)
    }

    pub(crate) async fn instances_since(
        &self,
        since: i64,
        watch: &[String],
        detail: InstanceDetail,
        wanted: impl Fn(&Mark) -> bool + Send,
    ) -> Result<ReadInstances, NovaDbError> {
        let at = self.pool.dialect().at();
        // Each branch has an index of its own: (updated_at, project_id), (deleted, created_at),
        // (uuid).
        let mut sql = format!(
            "{} FROM (SELECT id FROM instances WHERE updated_at >= {at} \
             UNION SELECT id FROM instances WHERE deleted = 0 AND created_at >= {at}",
            self.texts.instances
        );
        let mut values = vec![Value::from(second(since)); 2];
        let watch = padded(watch.iter().take(CHUNK).cloned().map(Value::from));
        if !watch.is_empty() {
            sql.push_str(&format!(
                " UNION SELECT id FROM instances WHERE uuid IN ({})",
                places(watch.len())
            ));
            values.extend(watch);
        }
        sql.push_str(&format!(
            ") c JOIN instances i ON i.id = c.id {}",
            instance::JOIN_EXTRA
        ));
        self.read_instances(&sql, values, detail, wanted).await
    }

    /// The live instances of hosts.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn host_instances(
        &self,
        hosts: &[String],
        detail: InstanceDetail,
    ) -> Result<Vec<Instance>, NovaDbError> {
        let mut found = Vec::new();
        for hosts in hosts.chunks(CHUNK) {
            let (sql, values) =
                self.instances_where("i.host", hosts.iter().cloned().map(Value::from));
            let sql = format!("{sql} AND i.deleted = 0 ORDER BY i.id");
            let read = self.read_instances(&sql, values, detail, |_| true).await?;
            found.extend(read.news.into_iter().filter(|i| !i.deleted));
        }
        Ok(found)
    }

    /// Instances by UUID, deleted ones included.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instances_by_uuid(
        &self,
        uuids: &[String],
        detail: InstanceDetail,
    ) -> Result<Vec<Instance>, NovaDbError> {
        let mut found = Vec::new();
        for uuids in uuids.chunks(CHUNK) {
            let (sql, values) =
                self.instances_where("i.uuid", uuids.iter().cloned().map(Value::from));
            found.extend(
                self.read_instances(&sql, values, detail, |_| true)
                    .await?
                    .news,
            );
        }
        Ok(found)
    }

    /// One instance, also if it is deleted.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instance(&self, uuid: &str) -> Result<Option<Instance>, NovaDbError> {
        let found = self
            .instances_by_uuid(&[uuid.to_owned()], InstanceDetail::default())
            .await?;
        Ok(found.into_iter().next())
    }

    /// UUID and host of every live instance that has a host: cheap, to find out from time to time
    /// what was missed.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instance_hosts(&self) -> Result<Vec<(String, String)>, NovaDbError> {
        let sql =
            "SELECT i.uuid, i.host FROM instances i WHERE i.deleted = 0 AND i.host IS NOT NULL";
        let rows = self.pool.rows("read instances", sql, Vec::new()).await?;
        rows.iter()
            .map(|row| {
                let text = |at| row.try_get_by_index::<String>(at);
                text(0)
                    .and_then(|uuid| Ok((uuid, text(1)?)))
                    .map_err(|error| self.pool.unreadable("instances", &error))
            })
            .collect()
    }

    /// When an owner last started an instance that had been stopped, in microseconds since 1970.
    /// Nova does not write that into `launched_at`.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn last_start(&self, uuid: &str) -> Result<Option<i64>, NovaDbError> {
        let sql = format!(
            "SELECT {} FROM instance_actions a WHERE a.instance_uuid = ? AND a.action = 'start' AND a.deleted = 0",
            self.pool.dialect().moment("MAX(a.start_time)")
        );
        let rows = self
            .pool
            .rows("read instance actions", &sql, vec![uuid.into()])
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let text: Option<String> = row
            .try_get_by_index(0)
            .map_err(|error| self.pool.unreadable("instance_actions", &error))?;
        Ok(text.and_then(|text| ebbtide_nova::python::datetime::read(&text)))
    }

    /// Id and server of each migration that has not ended: its id is a consumer in Placement as
    /// long as it holds what the server left.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn migrations_under_way(&self) -> Result<Vec<(String, String)>, NovaDbError> {
        // The ends as nova/objects/migration.py and nova/compute/manager.py write them; a
        // `finished` resize waits for its confirmation.
        let sql = "SELECT m.uuid, m.instance_uuid FROM migrations m WHERE m.deleted = 0 AND m.uuid IS NOT NULL \
                   AND m.instance_uuid IS NOT NULL AND m.status NOT IN \
                   ('completed', 'done', 'confirmed', 'reverted', 'failed', 'error', 'cancelled')";
        let rows = self.pool.rows("read migrations", sql, Vec::new()).await?;
        rows.iter()
            .map(|row| {
                let text = |at| row.try_get_by_index::<String>(at);
                text(0)
                    .and_then(|uuid| Ok((uuid, text(1)?)))
                    .map_err(|error| self.pool.unreadable("migrations", &error))
            })
            .collect()
    }

    fn instances_where(
        &self,
        column: &str,
        among: impl Iterator<Item = Value>,
    ) -> (String, Vec<Value>) {
        let values = padded(among);
        let sql = format!(
            "{} FROM instances i {} WHERE {column} IN ({})",
            self.texts.instances,
            instance::JOIN_EXTRA,
            places(values.len())
        );
        (sql, values)
    }

    async fn read_instances(
        &self,
        sql: &str,
        values: Vec<Value>,
        detail: InstanceDetail,
        wanted: impl Fn(&Mark) -> bool + Send,
    ) -> Result<ReadInstances, NovaDbError> {
        let rows = self.pool.rows("read instances", sql, values).await?;
        let mut read = ReadInstances::default();
        for row in &rows {
            let raw = instance::RawInstance::read(row)
                .map_err(|error| self.pool.unreadable("instances", &error))?;
            let mark = raw.mark();
            read.marks.push(mark);
            if wanted(&mark) {
                read.news_marks.push(mark);
                read.news.push(raw.take_in(&self.flavors));
            }
        }
        self.complete(&mut read.news, detail).await?;
        Ok(read)
    }
}

/// Placeholders.
pub(crate) fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// Values of a list, the last one repeated up to one of a few lengths: the drivers keep prepared
/// statements by their text.
pub(crate) fn padded(values: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut values: Vec<Value> = values.collect();
    if let Some(last) = values.last().cloned() {
        let length = [1, 4, 16, 64, 250, CHUNK]
            .into_iter()
            .find(|length| *length >= values.len())
            .unwrap_or(values.len());
        values.resize(length, last);
    }
    values
}
