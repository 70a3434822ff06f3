//! What can be done with a server, and what was done.

use super::Compute;
use crate::adapter::AdapterRequest;
use crate::error::OpenStackError;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// Nova has taken something on; it is done when the server shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AcceptedAction {
    /// Nova's own id of the request: that of the instance action which the tenant sees.
    pub request_id: Option<String>,
}

/// Something that was done with a server, as the tenant sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstanceAction {
    /// `create`, `stop`, `shelve`, `live-migration`, `delete`, …
    pub action: String,
    /// The request that caused it.
    #[serde(default)]
    pub request_id: String,
    /// `Error` if it failed.
    #[serde(default)]
    pub message: Option<String>,
    /// When, UTC without a zone.
    #[serde(default)]
    pub start_time: Option<String>,
    /// Who asked for it.
    #[serde(default)]
    pub user_id: Option<String>,
}

/// A move of a server between hosts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Migration {
    /// Its id.
    #[serde(default)]
    pub uuid: Option<Uuid>,
    /// `live-migration`, `migration`, `resize`, `evacuation`.
    #[serde(default)]
    pub migration_type: Option<String>,
    /// `queued`, `preparing`, `running`, `completed`, `failed`, `error`, `cancelled`.
    #[serde(default)]
    pub status: String,
    /// From this host.
    #[serde(default)]
    pub source_compute: Option<String>,
    /// To this one.
    #[serde(default)]
    pub dest_compute: Option<String>,
    /// When it was asked for.
    #[serde(default)]
    pub created_at: Option<String>,
}

#[derive(Deserialize)]
struct Actions {
    #[serde(rename = "instanceActions")]
    actions: Vec<InstanceAction>,
}

#[derive(Deserialize)]
struct Migrations {
    migrations: Vec<Migration>,
}

impl Compute {
    /// Deletes a server even if soft deletion is configured.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub async fn force_delete(&self, server: Uuid) -> Result<AcceptedAction, OpenStackError> {
        self.act(server, json!({"forceDelete": null})).await
    }

    /// Shuts a server down; it is when its status is `SHUTOFF`.
    ///
    /// # Errors
    /// [`OpenStackError::NotFound`], [`OpenStackError::Conflict`] if its state does not allow it,
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn stop(&self, server: Uuid) -> Result<AcceptedAction, OpenStackError> {
        self.act(server, json!({"os-stop": null})).await
    }

    /// Starts a server that is shut down.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub async fn start(&self, server: Uuid) -> Result<AcceptedAction, OpenStackError> {
        self.act(server, json!({"os-start": null})).await
    }

    /// Shelves a server: it is stopped, its disk is kept as an image, and after
    /// `shelved_offload_time` it leaves its host.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub async fn shelve(&self, server: Uuid) -> Result<AcceptedAction, OpenStackError> {
        self.act(server, json!({"shelve": null})).await
    }

    /// Makes a shelved server leave its host now; it has when its status is `SHELVED_OFFLOADED`.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub async fn shelve_offload(&self, server: Uuid) -> Result<AcceptedAction, OpenStackError> {
        self.act(server, json!({"shelveOffload": null})).await
    }

    /// Brings a shelved server back, on a host of the scheduler's choice.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub async fn unshelve(&self, server: Uuid) -> Result<AcceptedAction, OpenStackError> {
        self.act(server, json!({"unshelve": null})).await
    }

    /// Moves a running server to this host, or to one of the scheduler's choice.
    ///
    /// # Errors
    /// As [`stop`](Self::stop); [`OpenStackError::Refused`] if there is no host for it.
    pub async fn live_migrate(
        &self,
        server: Uuid,
        host: Option<&str>,
    ) -> Result<AcceptedAction, OpenStackError> {
        let mut wanted = json!({"host": host, "block_migration": "auto"});
        // From 2.30 on a host that is named is checked by the scheduler unless `force` is given, up
        // to 2.67.
        if self.negotiated().await? < crate::Microversion::new(2, 68) {
            wanted["force"] = Value::Bool(false);
        }
        self.act(server, json!({"os-migrateLive": wanted})).await
    }

    async fn act(&self, server: Uuid, action: Value) -> Result<AcceptedAction, OpenStackError> {
        let version = self.negotiated().await?;
        let ask =
            AdapterRequest::new(Method::POST, format!("/servers/{server}/action")).at(version);
        let (answer, _) = self.adapter.call(&ask.with(&action)).await?;
        Ok(AcceptedAction {
            request_id: answer.request_id,
        })
    }

    /// What was done with a server, the latest first; also of a deleted one.
    ///
    /// # Errors
    /// [`OpenStackError::NotFound`], [`OpenStackError::Unavailable`] and the like.
    pub async fn instance_actions(
        &self,
        server: Uuid,
    ) -> Result<Vec<InstanceAction>, OpenStackError> {
        let version = self.negotiated().await?;
        let ask = AdapterRequest::get(format!("/servers/{server}/os-instance-actions")).at(version);
        let (answer, call) = self.adapter.call(&ask).await?;
        let found: Actions = answer.json(&call)?;
        Ok(found.actions)
    }

    /// The moves of a server, the latest first.
    ///
    /// # Errors
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn migrations(&self, server: Uuid) -> Result<Vec<Migration>, OpenStackError> {
        // From 2.59 on a migration has a UUID; the newest comes first.
        let version = self.negotiated().await?;
        let ask = AdapterRequest::get(format!("/os-migrations?instance_uuid={server}")).at(version);
        let (answer, call) = self.adapter.call(&ask).await?;
        let found: Migrations = answer.json(&call)?;
        Ok(found.migrations)
    }
}
