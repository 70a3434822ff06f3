//! Reads for the API: single records, and lists, newest first.
//!
//! Lists are paged: a request for the next page names the identifier of the last record seen (the
//! marker). New records come first, so later pages never shift.

use crate::StoreError;
use crate::load::record;
use crate::store::Store;
use crate::tables::{
    DECISIONS, EVACUATIONS, IDLE_HOURS, LIVES, NO_VALID_HOST, PRICES, SERVERS, Table,
};
use ebbtide_model::{
    Decision, DecisionId, Evacuation, EvacuationId, EvacuationState, IdleHour, PastLife,
    PricePoint, Server, ServerId, ServerStatus, Timestamp,
};
use sea_orm::Value;
use serde::de::DeserializeOwned;

/// Most records on a page, as in Nova (`max_limit`).
pub const MAX_PAGE: u32 = 1000;

/// Which servers. Everything that is set must fit.
#[derive(Debug, Clone, Default)]
pub struct ServerFilter {
    pub project_id: Option<String>,
    /// In this status. A status of servers that are gone includes those, whatever `include_gone`
    /// says.
    pub status: Option<ServerStatus>,
    /// On this host, or last there.
    pub host: Option<String>,
    /// With exactly this name.
    pub name: Option<String>,
    /// Also those to which nothing can happen any more.
    pub include_gone: bool,
    /// At most so many, up to [`MAX_PAGE`]; 0 for [`MAX_PAGE`].
    pub limit: u32,
    /// Only those after this one.
    pub marker: Option<ServerId>,
}

/// Which evacuations. Everything that is set must fit.
#[derive(Debug, Clone, Default)]
pub struct EvacuationFilter {
    /// From this host.
    pub host: Option<String>,
    /// Of this project's servers.
    pub project_id: Option<String>,
    pub state: Option<EvacuationState>,
    /// With this server as victim or as preemptor.
    pub server_id: Option<ServerId>,
    /// Only those that are not final.
    pub active_only: bool,
    /// At most so many, up to [`MAX_PAGE`]; 0 for [`MAX_PAGE`].
    pub limit: u32,
    /// Only those after this one.
    pub marker: Option<EvacuationId>,
}

/// Which decisions. Everything that is set must fit.
#[derive(Debug, Clone, Default)]
pub struct DecisionFilter {
    /// For requests of this project.
    pub project_id: Option<String>,
    /// For the request with this id of OpenStack's services (`req-…`).
    pub request_id: Option<String>,
    /// About this server.
    pub server_id: Option<ServerId>,
    /// Only those from this time on.
    pub from: Option<Timestamp>,
    /// Only those before this time.
    pub before: Option<Timestamp>,
    /// Only those that found no room.
    pub refused_only: bool,
    /// At most so many, up to [`MAX_PAGE`]; 0 for [`MAX_PAGE`].
    pub limit: u32,
    /// Only those after this one.
    pub marker: Option<DecisionId>,
}

/// Which lives. Everything that is set must fit.
#[derive(Debug, Clone, Default)]
pub struct LifeFilter {
    /// Of this project's servers.
    pub project_id: Option<String>,
    /// Of this flavor, by name.
    pub flavor: Option<String>,
    /// Only those that ended at this time or later.
    pub ended_from: Option<Timestamp>,
    /// Only those that were launched before this time.
    pub launched_before: Option<Timestamp>,
    /// At most so many, up to [`MAX_PAGE`]; 0 for [`MAX_PAGE`].
    pub limit: u32,
    /// Only those after the one with this [key](PastLife::key).
    pub marker: Option<String>,
}

/// Which prices. Everything that is set must fit.
#[derive(Debug, Clone, Default)]
pub struct PriceFilter {
    /// Of this flavor, by name.
    pub flavor: Option<String>,
    /// Only those from this time on.
    pub from: Option<Timestamp>,
    /// Only those before this time.
    pub before: Option<Timestamp>,
    /// At most so many, up to [`MAX_PAGE`]; 0 for [`MAX_PAGE`].
    pub limit: u32,
    /// Only those after the one with this [key](PricePoint::key).
    pub marker: Option<String>,
}

/// A `WHERE` that grows.
#[derive(Default)]
struct Conditions {
    texts: Vec<&'static str>,
    values: Vec<Value>,
}

impl Conditions {
    fn and(&mut self, text: &'static str, values: impl IntoIterator<Item = Value>) {
        self.texts.push(text);
        self.values.extend(values);
    }

    fn and_if<V: Into<Value>>(&mut self, text: &'static str, value: Option<V>) {
        if let Some(value) = value {
            self.and(text, [value.into()]);
        }
    }
}

impl Store {
    /// One server, also one that is gone.
    ///
    /// # Errors
    /// `Corrupt`; those of the database. The same holds for all reads.
    pub async fn server(&self, id: ServerId) -> Result<Option<Server>, StoreError> {
        self.one(&SERVERS, &id.to_string()).await
    }

    /// One evacuation.
    ///
    /// # Errors
    /// As [`Store::server`].
    pub async fn evacuation(&self, id: EvacuationId) -> Result<Option<Evacuation>, StoreError> {
        self.one(&EVACUATIONS, &id.to_string()).await
    }

    /// One decision.
    ///
    /// # Errors
    /// As [`Store::server`].
    pub async fn decision(&self, id: DecisionId) -> Result<Option<Decision>, StoreError> {
        self.one(&DECISIONS, &id.to_string()).await
    }

    /// The latest decision about a server, also if it found no host.
    ///
    /// # Errors
    /// As [`Store::server`].
    pub async fn decision_for_server(&self, id: ServerId) -> Result<Option<Decision>, StoreError> {
        let sql = "SELECT d.id, d.record FROM decision_servers l \
                   JOIN decisions d ON d.id = l.decision_id WHERE l.server_id = ? \
                   ORDER BY l.created_at DESC, l.decision_id DESC LIMIT 1";
        let rows = self.query("a read", sql, [id.to_string().into()]).await?;
        rows.first().map(|row| record(&DECISIONS, row)).transpose()
    }

    /// Servers, newest first.
    ///
    /// # Errors
    /// As [`Store::server`]; `NoSuchMarker`.
    pub async fn servers(&self, filter: &ServerFilter) -> Result<Vec<Server>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and_if("project_id = ?", filter.project_id.as_deref());
        conditions.and_if("status = ?", filter.status.map(ServerStatus::as_str));
        conditions.and_if("host = ?", filter.host.as_deref());
        conditions.and_if("name = ?", filter.name.as_deref());
        if !filter.include_gone && !filter.status.is_some_and(ServerStatus::is_gone) {
            conditions.and("gone_at IS NULL", []);
        }
        let marker = filter.marker.map(|id| id.to_string());
        self.page(&SERVERS, "server", conditions, marker, filter.limit)
            .await
    }

    /// Evacuations, newest claim first.
    ///
    /// # Errors
    /// As [`Store::server`]; `NoSuchMarker`.
    pub async fn evacuations(
        &self,
        filter: &EvacuationFilter,
    ) -> Result<Vec<Evacuation>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and_if("host = ?", filter.host.as_deref());
        conditions.and_if("project_id = ?", filter.project_id.as_deref());
        conditions.and_if("state = ?", filter.state.map(EvacuationState::as_str));
        if let Some(id) = filter.server_id {
            let id = id.to_string();
            conditions.and(
                "(victim_id = ? OR preemptor_id = ?)",
                [id.clone().into(), id.into()],
            );
        }
        if filter.active_only {
            conditions.and("final_at IS NULL", []);
        }
        let marker = filter.marker.map(|id| id.to_string());
        self.page(&EVACUATIONS, "evacuation", conditions, marker, filter.limit)
            .await
    }

    /// Decisions, newest first.
    ///
    /// # Errors
    /// As [`Store::server`]; `NoSuchMarker`.
    pub async fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and_if("project_id = ?", filter.project_id.as_deref());
        conditions.and_if("request_id = ?", filter.request_id.as_deref());
        conditions.and_if(
            "id IN (SELECT decision_id FROM decision_servers WHERE server_id = ?)",
            filter.server_id.map(|id| id.to_string()),
        );
        conditions.and_if("created_at >= ?", filter.from.map(Timestamp::as_millis));
        conditions.and_if("created_at < ?", filter.before.map(Timestamp::as_millis));
        if filter.refused_only {
            conditions.and("outcome = ?", [NO_VALID_HOST.into()]);
        }
        let marker = filter.marker.map(|id| id.to_string());
        self.page(&DECISIONS, "decision", conditions, marker, filter.limit)
            .await
    }

    /// Lives that are over, latest launch first.
    ///
    /// # Errors
    /// As [`Store::server`]; `NoSuchMarker`.
    pub async fn lives(&self, filter: &LifeFilter) -> Result<Vec<PastLife>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and_if("project_id = ?", filter.project_id.as_deref());
        conditions.and_if("flavor = ?", filter.flavor.as_deref());
        conditions.and_if("ended_at >= ?", filter.ended_from.map(Timestamp::as_millis));
        let before = filter.launched_before.map(Timestamp::as_millis);
        conditions.and_if("created_at < ?", before);
        self.page(
            &LIVES,
            "life",
            conditions,
            filter.marker.clone(),
            filter.limit,
        )
        .await
    }

    /// Prices, the latest first.
    ///
    /// # Errors
    /// As [`Store::server`]; `NoSuchMarker`.
    pub async fn prices(&self, filter: &PriceFilter) -> Result<Vec<PricePoint>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and_if("flavor = ?", filter.flavor.as_deref());
        conditions.and_if("created_at >= ?", filter.from.map(Timestamp::as_millis));
        conditions.and_if("created_at < ?", filter.before.map(Timestamp::as_millis));
        let marker = filter.marker.clone();
        self.page(&PRICES, "price", conditions, marker, filter.limit)
            .await
    }

    /// What lay idle in the hours from `from` to `before`, one page: the latest first, and only
    /// hours after the one with this [key](IdleHour::key).
    ///
    /// # Errors
    /// As [`Store::server`]; `NoSuchMarker`.
    pub(crate) async fn idle_hours(
        &self,
        from: Timestamp,
        before: Timestamp,
        marker: Option<String>,
    ) -> Result<Vec<IdleHour>, StoreError> {
        let mut conditions = Conditions::default();
        conditions.and_if("created_at >= ?", Some(from.as_millis()));
        conditions.and_if("created_at < ?", Some(before.as_millis()));
        self.page(&IDLE_HOURS, "idle hour", conditions, marker, MAX_PAGE)
            .await
    }

    async fn one<T: DeserializeOwned>(
        &self,
        table: &'static Table,
        id: &str,
    ) -> Result<Option<T>, StoreError> {
        let sql = format!("SELECT id, record FROM {} WHERE id = ?", table.name);
        let rows = self.query("a read", &sql, [id.into()]).await?;
        rows.first().map(|row| record(table, row)).transpose()
    }

    async fn page<T: DeserializeOwned>(
        &self,
        table: &'static Table,
        what: &'static str,
        mut conditions: Conditions,
        marker: Option<String>,
        limit: u32,
    ) -> Result<Vec<T>, StoreError> {
        if let Some(marker) = marker {
            let sql = format!("SELECT created_at FROM {} WHERE id = ?", table.name);
            let rows = self.query("a read", &sql, [marker.as_str().into()]).await?;
            let Some(row) = rows.first() else {
                return Err(StoreError::NoSuchMarker { what, marker });
            };
            let at: i64 = row
                .try_get_by_index(0)
                .map_err(|error| self.classify("a read", error))?;
            // The first condition is implied by the second, but only it lets every planner start in
            // the index.
            conditions.and(
                "created_at <= ? AND (created_at < ? OR id < ?)",
                [at.into(), at.into(), marker.into()],
            );
        }
        let limit = if limit == 0 {
            MAX_PAGE
        } else {
            limit.min(MAX_PAGE)
        };
        let filter = if conditions.texts.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", conditions.texts.join(" AND "))
        };
        let sql = format!(
            "SELECT id, record FROM {} {filter} ORDER BY created_at DESC, id DESC LIMIT {limit}",
            table.name
        );
        let rows = self.query("a read", &sql, conditions.values).await?;
        rows.iter().map(|row| record(table, row)).collect()
    }
}
