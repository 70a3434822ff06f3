//! PostgreSQL with a standby.

use super::{JOINED, Member};
use crate::error::{Error, Result};
use crate::eventually::Pace;
use crate::server::postgres::Postgres;
use crate::server::{PrivateServer, ServerSettings};

/// A primary and a standby that has every commit before the client has its answer.
#[derive(Debug)]
pub struct PostgresPair {
    servers: Vec<Postgres>,
    primary: usize,
}

impl PostgresPair {
    /// Starts both.
    ///
    /// # Errors
    ///
    /// As [`PrivateServer::start_with`].
    pub async fn start() -> Result<Self> {
        let primary = Postgres::start().await?;
        let settings = ServerSettings::of_member(Member::Standby {
            primary: primary.port(),
        });
        let standby = PrivateServer::start_with(settings).await?;
        let pair = Self {
            servers: vec![primary, standby],
            primary: 0,
        };
        pair.replicate().await?;
        Ok(pair)
    }

    /// The URL of both, whichever is the primary.
    #[must_use]
    pub fn url(&self) -> String {
        joined("postgres", self.servers.iter().map(PrivateServer::port))
    }

    /// Ends the primary without warning. Nothing takes its place before
    /// [`PostgresPair::promote`].
    pub fn kill_primary(&mut self) {
        self.servers[self.primary].kill();
    }

    /// Makes the standby the primary.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] with what the server says.
    pub async fn promote(&mut self) -> Result<()> {
        let standby = 1 - self.primary;
        self.servers[standby].execute("SELECT pg_promote()").await?;
        self.primary = standby;
        Ok(())
    }

    /// Makes the primary that died a standby of the one that took its place, with a fresh copy of
    /// its data.
    ///
    /// # Errors
    ///
    /// As [`PrivateServer::restart`].
    pub async fn rejoin(&mut self) -> Result<()> {
        let primary = self.servers[self.primary].port();
        let dead = &mut self.servers[1 - self.primary];
        dead.begin_as(Member::Standby { primary }).await?;
        self.replicate().await
    }

    /// Lets every commit wait for the standby, and waits until the standby is there. After the copy
    /// of the data, so that a promoted standby waits for none.
    async fn replicate(&self) -> Result<()> {
        const SYNCHRONOUS: &str =
            "SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        let primary = &self.servers[self.primary];
        let set = "ALTER SYSTEM SET synchronous_standby_names = '*'";
        primary.execute(set).await?;
        primary.execute("SELECT pg_reload_conf()").await?;
        let mut pace = Pace::until(JOINED);
        while primary.execute(SYNCHRONOUS).await? != "1" {
            if !pace.rest().await {
                return Err(Error::BadAnswer {
                    name: "PostgreSQL".to_owned(),
                    reason: format!("the standby does not replicate after {JOINED:?}"),
                });
            }
        }
        Ok(())
    }
}

/// The URL of several servers.
pub(super) fn joined(scheme: &str, ports: impl Iterator<Item = u16>) -> String {
    let hosts: Vec<String> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
    format!("{scheme}://ebbtide:ebbtide@{}/ebbtide", hosts.join(","))
}
