//! Whether a caller still waits for the answer to a request.
//!
//! A request stays in the queue of the broker for half an hour, but its caller gives up after a
//! minute. Then Nova cleans up: it deletes the build request of a boot and buries the server in
//! cell0, and it resets the task state of a move. So a caller waits as long as the build request
//! exists, or the instance is in a task state in which Nova asks for a host.
//!
//! Two things cannot be determined: whether a live migration already has its host (`migrating`
//! lasts until the migration ends), and whether the caller waits for this very request or for a
//! later one for the same instance.

use crate::api::NovaDb;
use crate::error::NovaDbError;
use std::collections::HashSet;
use uuid::Uuid;

/// Build requests that are looked for with one question.
const AT_ONCE: usize = 200;

/// The task states in which Nova asks for a host, and who sets them before asking
/// (`nova/compute/api.py`).
const ASKING: [&str; 5] = [
    // A build that failed on a host and is tried again (`nova/compute/manager.py`,
    // `_do_build_and_run_instance`).
    "scheduling",
    // Resize and cold migration, and their next try.
    "resize_prep",
    // Live migration.
    "migrating",
    // Rebuild and evacuate.
    "rebuilding",
    // Unshelve.
    "unshelving",
];

/// Whether a caller waits for a host for an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerWait {
    /// A boot: its build request is there.
    Build,
    /// A move: the instance's task state says that a host is looked for.
    Task(String),
    /// No caller waits. The text says why, for the log.
    Gone(String),
}

impl CallerWait {
    /// Whether a caller waits.
    #[must_use]
    pub fn waits(&self) -> bool {
        !matches!(self, Self::Gone(_))
    }
}

impl NovaDb {
    /// Whether an instance's build request is still there: its boot is being scheduled.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn build_request_exists(&self, instance_uuid: &str) -> Result<bool, NovaDbError> {
        let sql = "SELECT b.instance_uuid FROM build_requests b WHERE b.instance_uuid = ?";
        let found = self
            .api()
            .rows("read build requests", sql, vec![instance_uuid.into()])
            .await?;
        Ok(!found.is_empty())
    }

    /// Which of these instances have no build request: they are in a cell, or were deleted.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn without_build_request(
        &self,
        instances: &[Uuid],
    ) -> Result<Vec<Uuid>, NovaDbError> {
        let mut without = Vec::new();
        for instances in instances.chunks(AT_ONCE) {
            let places = vec!["?"; instances.len()].join(", ");
            let sql = format!(
                "SELECT b.instance_uuid FROM build_requests b WHERE b.instance_uuid IN ({places})"
            );
            let names: Vec<String> = instances.iter().map(Uuid::to_string).collect();
            let values = names.iter().map(|name| name.as_str().into()).collect();
            let api = self.api();
            let found = api.rows("read build requests", &sql, values).await?;
            let found: HashSet<String> = found
                .iter()
                .map(|row| row.try_get_by_index(0))
                .collect::<Result<_, _>>()
                .map_err(|error| api.unreadable("build_requests", &error))?;
            let named = instances.iter().zip(&names);
            without.extend(
                named
                    .filter(|(_, name)| !found.contains(*name))
                    .map(|(uuid, _)| *uuid),
            );
        }
        Ok(without)
    }

    /// Whether an instance that has no build request was deleted, or buried by a caller that has
    /// given up: it never comes.
    ///
    /// # Errors
    /// Those of the databases.
    pub async fn is_deleted(&self, instance_uuid: &str) -> Result<bool, NovaDbError> {
        let Some(cell_uuid) = self.instance_cell(instance_uuid).await? else {
            return Ok(true);
        };
        if cell_uuid == crate::CELL0_UUID {
            return Ok(true);
        }
        let cell = match self.cell(&cell_uuid) {
            Ok(cell) => cell,
            Err(NovaDbError::NoSuchCell { .. }) => {
                self.cells().await?;
                self.cell(&cell_uuid)?
            }
            Err(error) => return Err(error),
        };
        let instance = cell.instance(instance_uuid).await?;
        Ok(instance.is_none_or(|instance| instance.deleted))
    }

    /// The UUID of the cell that an instance is in; `None`: it is unknown, or not in a cell yet.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instance_cell(&self, instance_uuid: &str) -> Result<Option<String>, NovaDbError> {
        let sql = "SELECT c.uuid FROM instance_mappings m JOIN cell_mappings c ON c.id = m.cell_id WHERE m.instance_uuid = ?";
        let api = self.api();
        let found = api
            .rows("read instance mappings", sql, vec![instance_uuid.into()])
            .await?;
        match found.first() {
            None => Ok(None),
            Some(row) => row
                .try_get_by_index(0)
                .map_err(|error| api.unreadable("instance_mappings", &error)),
        }
    }

    /// Whether a caller still waits for a host for this instance. The scheduler evicts no server
    /// for a request without a waiting caller.
    ///
    /// # Errors
    /// Those of the databases. The answer is then unknown, and the scheduler must not evict a
    /// server either.
    pub async fn caller_waits(&self, instance_uuid: &str) -> Result<CallerWait, NovaDbError> {
        // The build request goes only after the instance is in its cell: in this order there is no
        // moment at which neither is seen.
        if self.build_request_exists(instance_uuid).await? {
            return Ok(CallerWait::Build);
        }
        let gone = |why: &str| Ok(CallerWait::Gone(why.to_owned()));
        let Some(cell_uuid) = self.instance_cell(instance_uuid).await? else {
            return gone("it has no build request and is in no cell: it was deleted");
        };
        if cell_uuid == crate::CELL0_UUID {
            return gone("it was buried in cell0: its caller has given up");
        }
        let cell = match self.cell(&cell_uuid) {
            Ok(cell) => cell,
            // A cell that was made after we looked.
            Err(NovaDbError::NoSuchCell { .. }) => {
                self.cells().await?;
                self.cell(&cell_uuid)?
            }
            Err(error) => return Err(error),
        };
        let instance = cell.instance(instance_uuid).await?;
        Ok(match instance {
            None => CallerWait::Gone("it is not in its cell's database".to_owned()),
            Some(instance) if instance.deleted => CallerWait::Gone("it was deleted".to_owned()),
            Some(instance) => match instance.task_state {
                Some(state) if ASKING.contains(&state.as_str()) => CallerWait::Task(state),
                state => CallerWait::Gone(format!(
                    "its task state is {}",
                    state.as_deref().unwrap_or("none")
                )),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_caller_that_is_gone_does_not_wait() {
        assert!(CallerWait::Build.waits());
        assert!(CallerWait::Task("migrating".to_owned()).waits());
        assert!(!CallerWait::Gone(String::new()).waits());
    }
}
