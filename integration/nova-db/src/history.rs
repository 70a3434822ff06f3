//! When servers ran: those that are gone, as far as the operator has not archived or purged their
//! rows, and those that are there. Nothing here is part of a request for servers.

use crate::cell::{CellDb, padded, places};
use crate::dialect::{RowReader, second};
use crate::error::NovaDbError;
use crate::row::instance::InstanceFlavor;
use sea_orm::{DbErr, QueryResult, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Most values in one list of a statement.
const CHUNK: usize = 500;
/// What flavors of preemptible servers have in their JSON.
const MARKED: &str = "%ebbtide:preemptible%";

/// What an action did to a server, as far as it matters for when it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PowerChange {
    /// It was started, unshelved, resumed, restored or rebooted; it may have run already.
    Starts,
    /// It was stopped, shelved or suspended.
    Stops,
    /// Its deletion was requested.
    Deletes,
}

impl PowerChange {
    /// The actions as `nova/compute/instance_actions.py` names them. The others leave a server
    /// running, or begin and end while it is not.
    const ACTIONS: [(&'static str, Self); 9] = [
        ("start", Self::Starts),
        ("unshelve", Self::Starts),
        ("resume", Self::Starts),
        ("restore", Self::Starts),
        // Also of a server that was stopped, if it is a hard one.
        ("reboot", Self::Starts),
        ("stop", Self::Stops),
        ("shelve", Self::Stops),
        ("suspend", Self::Stops),
        ("delete", Self::Deletes),
    ];

    fn of(action: &str) -> Option<Self> {
        let mut all = Self::ACTIONS.into_iter();
        all.find(|(name, _)| *name == action)
            .map(|(_, change)| change)
    }
}

/// A server with the times of its life. Times are microseconds since 1970, UTC.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerHistory {
    pub uuid: String,
    /// Name that its user gave it.
    pub display_name: Option<String>,
    pub project_id: Option<String>,
    /// Host of the service that it was on last.
    pub host: Option<String>,
    pub availability_zone: Option<String>,
    /// Flavor; `None` if the row has none or one that cannot be read.
    pub flavor: Option<Arc<InstanceFlavor>>,
    /// When it came up; `None` if it never did. Nova writes it again when a server is rebuilt or
    /// unshelved.
    pub launched_at: Option<i64>,
    /// When it was gone; `None` if it is there.
    pub gone_at: Option<i64>,
    /// Requests that started, stopped or deleted it, in order.
    pub changes: Vec<(i64, PowerChange)>,
}

/// Where a page of servers that are gone ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoneMark {
    /// As the database writes it, so that it compares equal.
    terminated_at: String,
    id: i64,
}

impl CellDb {
    /// The preemptible ones among the next `limit` servers that were gone since `since`, the last
    /// one first, and the mark of the page: `None` if it is the last page. Servers of other flavors
    /// are read by their ids only, from an index.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn gone_servers(
        &self,
        since: i64,
        after: Option<&GoneMark>,
        limit: u32,
    ) -> Result<(Vec<ServerHistory>, Option<GoneMark>), NovaDbError> {
        let dialect = self.pool.dialect();
        let at = dialect.at();
        let mut sql = format!(
            "SELECT {}, {} FROM instances i WHERE i.terminated_at >= {at}",
            dialect.int("i.id"),
            dialect.moment("i.terminated_at"),
        );
        let mut values = vec![Value::from(second(since))];
        if let Some(mark) = after {
            sql.push_str(&format!(
                " AND (i.terminated_at < {at} OR (i.terminated_at = {at} AND i.id < ?))"
            ));
            let text = Value::from(mark.terminated_at.clone());
            values.extend([text.clone(), text, mark.id.into()]);
        }
        sql.push_str(&format!(
            " ORDER BY i.terminated_at DESC, i.id DESC LIMIT {limit}"
        ));
        let rows = self.pool.rows("read past instances", &sql, values).await?;
        let mut marks = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut columns = RowReader::new(row);
            let mut read = || {
                Ok(GoneMark {
                    id: columns.int()?.unwrap_or_default(),
                    terminated_at: columns.text()?.unwrap_or_default(),
                })
            };
            marks.push(read().map_err(|error: DbErr| self.pool.unreadable("instances", &error))?);
        }
        let full = u32::try_from(marks.len()).is_ok_and(|count| count >= limit);
        let mut found = Vec::new();
        for marks in marks.chunks(CHUNK) {
            let ids = marks.iter().map(|mark| Value::from(mark.id));
            found.extend(self.histories_where("i.id", ids, Some(MARKED)).await?);
        }
        found.retain(|history| history.gone_at.is_some());
        found.sort_by_key(|history| std::cmp::Reverse(history.gone_at));
        Ok((found, marks.pop().filter(|_| full)))
    }

    /// Servers by UUID, gone or not. Those that the cell does not have are left out.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn server_histories(
        &self,
        uuids: &[String],
    ) -> Result<Vec<ServerHistory>, NovaDbError> {
        let mut found = Vec::new();
        for uuids in uuids.chunks(CHUNK) {
            let uuids = uuids.iter().cloned().map(Value::from);
            found.extend(self.histories_where("i.uuid", uuids, None).await?);
        }
        Ok(found)
    }

    async fn histories_where(
        &self,
        column: &str,
        among: impl Iterator<Item = Value> + Send,
        flavor: Option<&str>,
    ) -> Result<Vec<ServerHistory>, NovaDbError> {
        let dialect = self.pool.dialect();
        let mut values = padded(among);
        if values.is_empty() {
            return Ok(Vec::new());
        }
        // The row of a deleted instance in `instance_extra` is deleted, too.
        let mut sql = format!(
            "SELECT i.uuid, i.display_name, i.project_id, i.host, i.availability_zone, e.flavor, \
             i.vm_state, {}, {}, {}, {} FROM instances i \
             LEFT JOIN instance_extra e ON e.instance_uuid = i.uuid \
             WHERE {} AND {column} IN ({})",
            dialect.int("i.deleted"),
            dialect.moment("i.launched_at"),
            dialect.moment("i.terminated_at"),
            dialect.moment("i.deleted_at"),
            dialect.is_false("i.hidden"),
            places(values.len()),
        );
        if let Some(flavor) = flavor {
            sql.push_str(" AND e.flavor LIKE ?");
            values.push(flavor.into());
        }
        let rows = self.pool.rows("read past instances", &sql, values).await?;
        let mut found: HashMap<String, ServerHistory> = HashMap::with_capacity(rows.len());
        for row in &rows {
            let history = self.history(row);
            let history = history.map_err(|error| self.pool.unreadable("instances", &error))?;
            found.entry(history.uuid.clone()).or_insert(history);
        }
        self.add_changes(&mut found).await?;
        Ok(found.into_values().collect())
    }

    fn history(&self, row: &QueryResult) -> Result<ServerHistory, DbErr> {
        let mut columns = RowReader::new(row);
        let uuid = columns.text()?.unwrap_or_default();
        let (display_name, project_id) = (columns.text()?, columns.text()?);
        let (host, availability_zone) = (columns.text()?, columns.text()?);
        let flavor = columns.text()?;
        let vm_state = columns.text()?;
        let deleted = columns.truth()? || vm_state.as_deref() == Some("deleted");
        let launched_at = columns.moment()?;
        let (terminated_at, deleted_at) = (columns.moment()?, columns.moment()?);
        Ok(ServerHistory {
            uuid,
            display_name,
            project_id,
            host,
            availability_zone,
            flavor: flavor.as_deref().and_then(|text| self.flavors.get(text)),
            launched_at,
            gone_at: terminated_at.or(deleted_at).filter(|_| deleted),
            changes: Vec::new(),
        })
    }

    async fn add_changes(
        &self,
        histories: &mut HashMap<String, ServerHistory>,
    ) -> Result<(), NovaDbError> {
        if histories.is_empty() {
            return Ok(());
        }
        let uuids = padded(histories.keys().cloned().map(Value::from));
        let names: Vec<String> = PowerChange::ACTIONS
            .iter()
            .map(|(name, _)| format!("'{name}'"))
            .collect();
        let sql = format!(
            "SELECT a.instance_uuid, a.action, {} FROM instance_actions a \
             WHERE a.instance_uuid IN ({}) AND a.action IN ({}) ORDER BY a.id",
            self.pool.dialect().moment("a.start_time"),
            places(uuids.len()),
            names.join(", ")
        );
        let rows = self.pool.rows("read past instances", &sql, uuids).await?;
        for row in &rows {
            let mut columns = RowReader::new(row);
            let mut read = || Ok((columns.text()?, columns.text()?, columns.moment()?));
            let (uuid, action, at) =
                read().map_err(|error: DbErr| self.pool.unreadable("instance_actions", &error))?;
            let change = action.as_deref().and_then(PowerChange::of);
            let history = uuid.and_then(|uuid| histories.get_mut(&uuid));
            if let (Some(history), Some(change), Some(at)) = (history, change, at) {
                history.changes.push((at, change));
            }
        }
        for history in histories.values_mut() {
            // Nova's times are whole seconds: a stop and a start of the same second stay in the
            // order in which they were asked for.
            history.changes.sort_by_key(|(at, _)| *at);
        }
        Ok(())
    }
}
