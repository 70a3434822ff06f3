//! Restores a region from the database.

use crate::backup::RestoredRegion;
use crate::books::{EvacuationBook, HostBook, HostEntry, ServerBook};
use crate::market::Market;
use crate::orphaned_start;
use crate::speculate::{SpeculationCounts, SpeculativeDecisions};
use crate::{Region, RegionConfig, RegionError};
use ebbtide_engine::{Engine, HostTable};
use ebbtide_market::PriceRule;
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::{OutboxMessage, Snapshot};
use ebbtide_model::{Evacuation, EvacuationState, Host, ServerId, ServerStatus, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Region {
    /// Restores a region from a database snapshot.
    ///
    /// Agents must not be punished for the scheduler's own downtime. So everything under way gets
    /// new time from `now` on: an evacuation at least one more notice timeout, plus its grace
    /// period if that had begun; a start the whole start timeout. A host that was up when the
    /// scheduler last ran counts as up until its agent has had time for a heartbeat.
    ///
    /// # Errors
    /// A configuration value or a host's inventory is out of range, or the snapshot contradicts
    /// itself.
    pub fn restore(
        config: RegionConfig,
        engine: Arc<Engine>,
        snapshot: Snapshot,
        now: Timestamp,
    ) -> Result<Self, RegionError> {
        config.check()?;
        snapshot.hosts.iter().try_for_each(Host::check)?;
        let rule = config
            .market
            .enabled
            .then(|| PriceRule::new(config.market.clone()));
        let rule = rule.transpose().map_err(RegionConfig::market_error)?;
        let servers = ServerBook::new(config.default_grace_seconds);
        let mut region = Self {
            config,
            engine,
            shadow: None,
            table: HostTable::new(),
            hosts: HostBook::default(),
            removed: BTreeMap::new(),
            aggregates: snapshot.aggregates.into_iter().map(|a| (a.id, a)).collect(),
            flavors: snapshot.flavors.into_iter().map(|f| (f.id, f)).collect(),
            groups: BTreeMap::new(),
            budgets: snapshot
                .budgets
                .into_iter()
                .map(|b| (b.scope.clone(), b))
                .collect(),
            servers,
            evacuations: EvacuationBook::default(),
            restored: snapshot.restored.map(|mark| RestoredRegion {
                mark,
                since: now,
                outbox: snapshot.outbox.clone(),
            }),
            market: Market::new(rule, snapshot.prices),
            forget_at: now,
            improvements: 0,
            catalog: 0,
            speculations: SpeculationCounts::default(),
            speculating: SpeculativeDecisions::default(),
        };
        // The table keeps launch times ready for the cost module's billing period.
        region
            .table
            .set_billing_period(region.engine.config().period_seconds);
        let (removed, hosts) = snapshot
            .hosts
            .into_iter()
            .partition::<Vec<_>, _>(|host| host.removed_at.is_some());
        removed.iter().for_each(|host| region.note_removed(host));
        region.restore_hosts(hosts, now);
        region.refresh_aggregates();
        for group in snapshot.groups {
            region.table.put_group(&group);
            region.groups.insert(group.id, group);
        }
        // Evacuations come before servers, because they record whether a victim is being spared or
        // rests.
        for evacuation in snapshot.evacuations {
            region.restore_evacuation(evacuation, now);
        }
        for (id, at) in snapshot.gone {
            region.servers.deleted_mut().add(id, at);
        }
        let patience = now.plus(region.config.act_timeout_seconds);
        for server in snapshot.servers {
            let (id, status) = (server.id, server.status);
            // By the agent's clock if that time is stored: it is compared with the times of
            // heartbeats.
            let reported = server.reported_at.or(server.launched_at);
            if let Some(reported) = reported.filter(|_| runs_by_now(status)) {
                region.servers.note_started(id, reported);
            }
            region.index_server(server, patience)?;
            if matches!(status, ServerStatus::Building | ServerStatus::Deleting) {
                let until = now.plus(region.config.start_timeout_seconds);
                region.servers.calls_mut().waits(id, until);
            }
        }
        for message in &snapshot.outbox {
            region.restore_unsent(message, now);
        }
        Ok(region)
    }

    fn restore_hosts(&mut self, hosts: Vec<Host>, now: Timestamp) {
        let down_after = self.config.host_down_seconds.as_millis();
        // The newest heartbeat of any agent shows when the scheduler last ran.
        let newest = hosts
            .iter()
            .filter_map(|h| h.last_seen)
            .max()
            .unwrap_or_default();
        for mut host in hosts {
            let silent = host
                .last_seen
                .map_or(i64::MAX, |seen| newest.millis_since(seen));
            // If the clock was set back, a host must not count as heard in the future, and as up
            // until then.
            host.last_seen = host.last_seen.map(|seen| seen.min(now));
            let left = down_after.saturating_sub(silent).max(0);
            let trusted_until = Timestamp::from_millis(now.as_millis().saturating_add(left));
            let mut entry = HostEntry::restored(host, trusted_until);
            entry.health = entry.health_at(now, down_after);
            let name = entry.host.name.clone();
            self.table.put_host(&entry.host);
            self.table.set_health(&name, entry.health);
            self.hosts.put(entry);
        }
    }

    fn restore_evacuation(&mut self, mut evacuation: Evacuation, now: Timestamp) {
        if !evacuation.state.is_final() {
            // Reports about it may wait in the scheduler's queue.
            evacuation.give_up_at = self.config.evacuation().restored_limit(
                evacuation.state,
                evacuation.grace,
                evacuation.give_up_at,
                now,
            );
        } else if evacuation.state == EvacuationState::Failed {
            let ended = evacuation.ended_at.unwrap_or_default().min(now);
            let until = self.config.evacuation().rest_limit(ended);
            if until > now {
                self.servers.rest_at_least(evacuation.victim_id, until);
            }
        }
        self.index_evacuation(evacuation);
    }

    /// Notes that the broker has not confirmed a message yet. A message that cannot be read is
    /// published but not tracked.
    pub(crate) fn restore_unsent(&mut self, message: &OutboxMessage, now: Timestamp) {
        if let Some(id) = message
            .evacuation_id
            .filter(|id| self.evacuations.is_active(id))
        {
            self.evacuations.note_unsent(id, message.id);
            return;
        }
        let server = match Message::from_bytes(&message.body).map(|m| m.body) {
            Ok(Body::Start(start)) => {
                self.requested_server(start.server_id, ServerStatus::Building)
            }
            Ok(Body::Delete(delete)) => self
                .requested_server(delete.server_id, ServerStatus::Deleting)
                .or_else(|| {
                    let id = orphaned_start::id_of(delete.server_id, &message.host);
                    self.requested_server(id, ServerStatus::Deleting)
                }),
            _ => None,
        };
        if let Some(id) = server {
            let until = now.plus(self.config.start_timeout_seconds);
            self.servers.calls_mut().sent(id, message.id, until);
        }
    }

    fn requested_server(&self, id: ServerId, status: ServerStatus) -> Option<ServerId> {
        let server = self.servers.get(&id)?;
        (server.status == status).then_some(id)
    }
}

/// True for servers whose launch time is that of their present life.
fn runs_by_now(status: ServerStatus) -> bool {
    !matches!(
        status,
        ServerStatus::Building | ServerStatus::Stopped | ServerStatus::Hibernated
    )
}
