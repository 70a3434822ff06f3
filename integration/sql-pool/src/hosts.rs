//! Several servers of one database, of which one is used at a time: the nodes of a Galera cluster,
//! or a PostgreSQL primary and its standbys.

use ebbtide_runtime::clock::Stopwatch;
use ebbtide_runtime::login::Renewal;
use sea_orm::sqlx::mysql::MySqlDatabaseError;
use sea_orm::sqlx::{
    ConnectOptions, Connection, Database, Error, Executor as _, MySql, Postgres, Row as _,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

/// How often the server in use is asked whether it still takes writes.
const LOOK: Duration = Duration::from_millis(500);
/// How long a server may take to answer that before another one is tried. A server that stands
/// still keeps its connections open and says nothing.
const ANSWER: Duration = Duration::from_secs(2);

/// How connections of a database are made.
pub type Options<D> = <<D as Database>::Connection as Connection>::Options;

/// A database whose servers say whether they take writes.
pub trait Writable: Database {
    /// False for a server that only reads, or whose cluster has no quorum.
    fn takes_writes(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}

impl Writable for Postgres {
    /// As libpq's `target_session_attrs=read-write`.
    async fn takes_writes(connection: &mut Self::Connection) -> Result<bool, Error> {
        let ask = "SELECT NOT pg_is_in_recovery() \
                   AND current_setting('default_transaction_read_only') = 'off'";
        connection.fetch_one(ask).await?.try_get(0)
    }
}

impl Writable for MySql {
    async fn takes_writes(connection: &mut Self::Connection) -> Result<bool, Error> {
        let ask = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'wsrep_on')";
        let mut is_galera = false;
        for row in connection.fetch_all(ask).await? {
            let (name, value): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            match (name.as_str(), value.as_str()) {
                ("read_only", "ON") => return Ok(false),
                ("wsrep_on", "ON") => is_galera = true,
                _ => {}
            }
        }
        if !is_galera {
            return Ok(true);
        }
        // A node without a quorum, or one that still takes over the data of another.
        let ready = connection.fetch_optional("SHOW GLOBAL STATUS LIKE 'wsrep_ready'");
        let ready: Option<String> = ready.await?.map(|row| row.try_get(1)).transpose()?;
        Ok(ready.as_deref() == Some("ON"))
    }
}

/// The servers of one database, in the order of preference.
pub struct Hosts<D: Writable> {
    /// With the name for people, without a password. A reload replaces the logins.
    servers: RwLock<Vec<(String, Options<D>)>>,
    chosen: AtomicUsize,
    /// Since another one was chosen, or another login.
    switched: Mutex<Option<Stopwatch>>,
}

impl<D: Writable> Hosts<D> {
    /// Servers with their names for people. The first one is chosen until [`Hosts::choose`].
    #[must_use]
    pub fn new(servers: Vec<(String, Options<D>)>) -> Self {
        Self {
            servers: RwLock::new(servers),
            chosen: AtomicUsize::new(0),
            switched: Mutex::new(None),
        }
    }

    /// True if there is a choice.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.servers().len() > 1
    }

    /// Chooses the first server that takes writes. A single server need only answer.
    ///
    /// # Errors
    /// No server does: what each of them said, or what the last one said if all refuse the login.
    pub async fn choose(&self) -> Result<Options<D>, Error> {
        if !self.are_several() {
            let options = self.chosen();
            drop(options.connect().await?.close().await);
            return Ok(options);
        }
        let (at, connection) = self.find().await?;
        drop(connection.close().await);
        self.chosen.store(at, Ordering::Relaxed);
        Ok(self.chosen())
    }

    /// How to connect to the chosen server.
    #[must_use]
    pub fn chosen(&self) -> Options<D> {
        let chosen = self.chosen.load(Ordering::Relaxed);
        self.servers()[chosen].1.clone()
    }

    /// Takes new logins for the same servers, in the same order. Connections that are older count
    /// as outdated.
    pub fn replace_logins(&self, logins: Vec<Options<D>>) {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        for ((_, old), new) in servers.iter_mut().zip(logins) {
            *old = new;
        }
        drop(servers);
        self.note_switch();
    }

    fn servers(&self) -> Vec<(String, Options<D>)> {
        let servers = self.servers.read();
        servers.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_switch(&self) {
        let mut switched = self.switched.lock().unwrap_or_else(PoisonError::into_inner);
        *switched = Some(Stopwatch::start());
    }

    /// True for a connection of this age that was made before another server was chosen.
    #[must_use]
    pub fn is_outdated(&self, age: Duration) -> bool {
        let switched = self.switched.lock().unwrap_or_else(PoisonError::into_inner);
        switched.as_ref().is_some_and(|since| age > since.elapsed())
    }

    /// Watches the chosen server for ever. When it takes no writes any more and another one does,
    /// that one is chosen, and `switch` gets how to connect to it.
    pub async fn follow(&self, switch: impl Fn(&Options<D>) + Send) {
        let mut kept: Option<D::Connection> = None;
        loop {
            tokio::time::sleep(LOOK).await;
            if let Some(connection) = &mut kept {
                let answer = tokio::time::timeout(ANSWER, D::takes_writes(connection)).await;
                if matches!(answer, Ok(Ok(true))) {
                    continue;
                }
            }
            // The chosen one is asked first: it may only have lost this connection.
            let found = self.find().await;
            kept = None;
            let Ok((at, connection)) = found else {
                continue;
            };
            kept = Some(connection);
            let before = self.chosen.swap(at, Ordering::Relaxed);
            if before != at {
                self.note_switch();
                let servers = self.servers();
                let (from, to) = (&servers[before].0, &servers[at].0);
                tracing::warn!(%from, %to, "another database server takes the writes now");
                switch(&servers[at].1);
            }
        }
    }

    /// The first server that takes writes, from the chosen one on, with a connection to it.
    async fn find(&self) -> Result<(usize, D::Connection), Error> {
        let (chosen, servers) = (self.chosen.load(Ordering::Relaxed), self.servers());
        let (mut refusals, mut all_answer) = (Vec::new(), true);
        for offset in 0..servers.len() {
            let at = (chosen + offset) % servers.len();
            let (name, options) = &servers[at];
            let attempt = async {
                let mut connection = options.connect().await?;
                let takes_writes = D::takes_writes(&mut connection).await?;
                Ok::<_, Error>(takes_writes.then_some(connection))
            };
            let refusal = match tokio::time::timeout(ANSWER, attempt).await {
                Ok(Ok(Some(connection))) => return Ok((at, connection)),
                Ok(Ok(None)) => {
                    all_answer = false;
                    "it takes no writes".to_owned()
                }
                Ok(Err(error)) => {
                    all_answer &= matches!(error, Error::Database(_));
                    if all_answer && offset + 1 == servers.len() {
                        return Err(error);
                    }
                    error.to_string()
                }
                Err(_) => {
                    all_answer = false;
                    format!("no answer within {} s", ANSWER.as_secs())
                }
            };
            refusals.push(format!("{name}: {refusal}"));
        }
        Err(Error::Io(std::io::Error::other(refusals.join("; "))))
    }
}

/// Tests the logins of the servers of one database, by a connection of its own to the first one
/// that answers.
///
/// # Errors
/// A server answers and refuses the login.
pub async fn test_logins<D: Database>(logins: &[Options<D>]) -> Result<Renewal, Error> {
    let mut problem = "no server is named".to_owned();
    for login in logins {
        match tokio::time::timeout(ANSWER, login.connect()).await {
            Ok(Ok(connection)) => {
                drop(connection.close().await);
                return Ok(Renewal::Accepted);
            }
            Ok(Err(error)) if is_login_refused(&error) => return Err(error),
            Ok(Err(error)) => problem = error.to_string(),
            Err(_) => problem = format!("no answer within {} s", ANSWER.as_secs()),
        }
    }
    Ok(Renewal::Untested(problem))
}

/// Whether a server refuses the login: the user, the password, or the database for this user.
fn is_login_refused(error: &Error) -> bool {
    let Error::Database(error) = error else {
        return false;
    };
    match error.try_downcast_ref::<MySqlDatabaseError>() {
        Some(error) => matches!(error.number(), 1044 | 1045 | 1049 | 1698),
        None => matches!(
            error.code().as_deref(),
            Some("28000" | "28P01" | "3D000" | "42501")
        ),
    }
}
