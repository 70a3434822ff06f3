//! Ends servers at their maximum lifetime. Every scheduler looks; the ledger decides which one
//! begins: a server is a victim of one open row at most, and one life ends once.

use super::{CountedBudgets, Evacuations};
use crate::error::NovaServiceError;
use crate::preemption::{Preemption, Victim};
use ebbtide_model::{EvacuationCause, Seconds, Timestamp};
use ebbtide_nova_cloud::PlannedVictim;
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::ledger::LedgerError;
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

/// Longest pause between two looks. A look reads the changed rows of Nova's databases, because a
/// quiet cloud has no requests that would read them.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Shortest pause, so that a server that is due and cannot have its notice costs little.
const LEAST_PAUSE: Duration = Duration::from_millis(200);
/// How long a server is left alone that could not have its notice.
const REST: Seconds = Seconds(30);

/// Servers that could not have their notice, and until when they are left alone.
#[derive(Debug, Default)]
pub(crate) struct RestingServers(HashMap<Uuid, Timestamp>);

impl RestingServers {
    /// Whether a server is left alone.
    pub(crate) fn is_resting(&self, server: Uuid) -> bool {
        self.0.contains_key(&server)
    }

    pub(crate) fn begin(&mut self, server: Uuid, now: Timestamp) {
        self.0.insert(server, now.plus(REST));
    }

    pub(crate) fn forget_old(&mut self, now: Timestamp) {
        self.0.retain(|_, until| *until > now);
    }
}

impl Evacuations {
    pub(super) fn look_after_lifetimes(&self) {
        let all = self.clone();
        let stop = self.shared.tasks.stop().clone();
        self.shared.tasks.spawn("lifetimes", async move {
            let mut resting = RestingServers::default();
            while pause(&stop, all.until_next_lifetime()).await {
                all.end_lifetimes(&mut resting).await;
            }
        });
    }

    /// The pause before the next look.
    fn until_next_lifetime(&self) -> Duration {
        let now = clock::now();
        let next = self.shared.facts.read(|cloud| cloud.next_lifetime(now));
        next.map_or(LOOK_EVERY, |at| {
            let millis = at.millis_since(now).max(0).unsigned_abs();
            Duration::from_millis(millis).clamp(LEAST_PAUSE, LOOK_EVERY)
        })
    }

    /// Begins the evacuation of every server whose notice is due.
    pub(crate) async fn end_lifetimes(&self, resting: &mut RestingServers) {
        let facts = &self.shared.facts;
        facts.database.freshen().await;
        let now = clock::now();
        resting.forget_old(now);
        for server in facts.read(|cloud| cloud.lifetimes_due(now)) {
            if self.shared.tasks.stop().is_cancelled() {
                return;
            }
            if resting.is_resting(server) {
                continue;
            }
            match self.end_lifetime(server).await {
                Ok(true) => {}
                Ok(false) => resting.begin(server, clock::now()),
                Err(error) => {
                    resting.begin(server, clock::now());
                    tracing::warn!(
                        code = error.code(),
                        %server,
                        "its lifetime is over and its evacuation could not begin: {error}; it is tried again"
                    );
                }
            }
        }
    }

    /// Begins the evacuation of a server at its maximum lifetime. False: not now.
    async fn end_lifetime(&self, server: Uuid) -> Result<bool, NovaServiceError> {
        let facts = &self.shared.facts;
        self.look_for_start(server).await?;
        let now = clock::now();
        let known = facts.read(|cloud| {
            let due = cloud.lifetimes_due(now).contains(&server);
            let since = cloud.lives_since(server).filter(|_| due)?;
            Some((since, cloud.victim_of_end(server)))
        });
        // Its owner has started it meanwhile, or it is leaving: nothing to do.
        let Some((since, planned)) = known else {
            return Ok(true);
        };
        let cause = EvacuationCause::MaxLifetime;
        // No disruption: no budget counts it.
        let budgets = CountedBudgets::default();
        self.end(planned, cause, &budgets, |victim| {
            end_of_life(cause, victim, since)
        })
        .await
    }

    /// Begins the evacuation of a server whose owner does not pay the present price. False: not
    /// now.
    ///
    /// # Errors
    /// Those of Nova's databases, the ledger, Placement, and the bus to the agents.
    pub(crate) async fn end_outbid(&self, server: Uuid) -> Result<bool, NovaServiceError> {
        self.look_for_start(server).await?;
        let known = self.shared.facts.read(|cloud| {
            let since = cloud.lives_since(server);
            let since = since.filter(|_| cloud.may_end(server))?;
            Some((since, cloud.victim_of_end(server)))
        });
        let Some((since, planned)) = known else {
            return Ok(false);
        };
        let cause = EvacuationCause::OutOfBid;
        // No disruption: no budget counts it.
        let budgets = CountedBudgets::default();
        self.end(planned, cause, &budgets, |victim| {
            end_of_life(cause, victim, since)
        })
        .await
    }

    /// Begins the evacuation of a server that no newcomer needs to leave, with the record that
    /// `record` makes of it. False: not now.
    pub(super) async fn end(
        &self,
        planned: Option<PlannedVictim>,
        cause: EvacuationCause,
        budgets: &CountedBudgets,
        record: impl FnOnce(Victim) -> Preemption,
    ) -> Result<bool, NovaServiceError> {
        let Some(planned) = planned else {
            return Ok(false);
        };
        let server = planned.uuid;
        let queue = self.shared.prefix.agent(&planned.host.host)?;
        if !self.shared.bus.is_read(&queue).await? {
            tracing::info!(
                %server,
                host = planned.host.host,
                cause = cause.as_str(),
                "it has to leave; no agent reads from the queue of its host, so it has no notice yet"
            );
            return Ok(false);
        }
        let request = format!("{} {server}", cause.as_str());
        let placement = self.shared.facts.providers.placement(&request);
        let held = placement.allocations(server).await?;
        let Some(victim) = super::victim(&planned, &held) else {
            return Ok(false);
        };
        self.begin_alone(record(victim), budgets).await
    }

    /// Writes a record without newcomers into the ledger and drives it. False: another row has its
    /// victim, has ended this life already, or has used up one of the budgets.
    pub(crate) async fn begin_alone(
        &self,
        record: Preemption,
        budgets: &CountedBudgets,
    ) -> Result<bool, NovaServiceError> {
        let (id, request) = (record.id, record.request_id.clone());
        match self.hold_new(record, budgets).await {
            Ok(held) => {
                tracing::info!(preemption = %id, request, "a server ends");
                self.spawn_driver(held, None, None);
                Ok(true)
            }
            Err(
                error @ (LedgerError::VictimTaken { .. }
                | LedgerError::RequestTaken { .. }
                | LedgerError::BudgetMoved { .. }),
            ) => {
                tracing::debug!(code = error.code(), request, "{error}");
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads whether the server's owner has started it after its launch: Nova does not write that
    /// into its row.
    pub(super) async fn look_for_start(&self, server: Uuid) -> Result<(), NovaServiceError> {
        let facts = &self.shared.facts;
        let nova = facts.database.nova();
        let uuid = server.to_string();
        let Some(cell) = nova.instance_cell(&uuid).await? else {
            return Ok(());
        };
        if let Some(started) = nova.cell(&cell)?.last_start(&uuid).await? {
            let later = facts.read(|cloud| {
                let since = cloud.lives_since(server);
                since.is_some_and(|since| since.as_millis() < started.div_euclid(1000))
            });
            if later {
                facts.write(|cloud| cloud.set_started(server, started));
            }
        }
        Ok(())
    }
}

/// The record of a server that has lived as long as its flavor allows.
#[cfg(test)]
pub(crate) fn end_of_lifetime(victim: Victim, since: Timestamp) -> Preemption {
    end_of_life(EvacuationCause::MaxLifetime, victim, since)
}

fn end_of_life(cause: EvacuationCause, victim: Victim, since: Timestamp) -> Preemption {
    let id = ebbtide_runtime::ids::new();
    Preemption::without_newcomers(id, cause, victim, since, clock::now())
}
