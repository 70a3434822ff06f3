//! ComputeFilter over many hosts: heartbeats as a column, with the oldest and the newest of each 64
//! beside it, so that a block in which all are up is one comparison.

use super::classes::ReferenceNeeded;
use crate::model::{HostState, Options};
use ebbtide_model::host_set::{HostSet, WORD, ones};

/// Enabled hosts and their heartbeats.
#[derive(Debug, Clone, Default)]
pub(super) struct ComputeUpColumn {
    heartbeat: Vec<i64>,
    /// Neither disabled nor forced down.
    enabled: HostSet,
    /// Those of them that were never seen: asking about them raises.
    unseen: HostSet,
    /// By block, over those that are enabled and were seen.
    oldest: Vec<i64>,
    newest: Vec<i64>,
}

impl ComputeUpColumn {
    /// Takes a host in, or out.
    pub(super) fn put(&mut self, at: usize, state: Option<&HostState>) {
        if self.heartbeat.len() <= at {
            self.heartbeat.resize(at + 1, 0);
            self.enabled.grow(at + 1);
            self.unseen.grow(at + 1);
            let blocks = (at + 1).div_ceil(WORD);
            self.oldest.resize(blocks, i64::MAX);
            self.newest.resize(blocks, i64::MIN);
        }
        let service = state.map(|state| &state.service);
        let enabled = service.is_some_and(|service| !service.disabled && !service.forced_down);
        let heartbeat = service.and_then(|service| service.last_seen_up.or(service.created_at));
        self.enabled.put(at, enabled);
        self.unseen.put(at, enabled && heartbeat.is_none());
        self.heartbeat[at] = heartbeat.unwrap_or(0);
        let block = at / WORD;
        let (mut oldest, mut newest) = (i64::MAX, i64::MIN);
        for bit in ones(self.enabled.words()[block] & !self.unseen.words()[block]) {
            let heartbeat = self.heartbeat[block * WORD + bit];
            oldest = oldest.min(heartbeat);
            newest = newest.max(heartbeat);
        }
        (self.oldest[block], self.newest[block]) = (oldest, newest);
    }

    /// Takes out the hosts that are not up.
    pub(super) fn run(
        &self,
        alive: &mut HostSet,
        options: &Options,
        now: i64,
    ) -> Result<(), ReferenceNeeded> {
        alive.keep(&self.enabled);
        if alive.meets(&self.unseen) || (options.servicegroup_memcached && !alive.is_empty()) {
            return Err(ReferenceNeeded);
        }
        let window = i128::from(options.service_down_time.unwrap_or(0)) * 1_000_000;
        let up = |heartbeat: i64| (i128::from(now) - i128::from(heartbeat)).abs() <= window;
        for (block, word) in alive.words_mut().iter_mut().enumerate() {
            if *word == 0 || (up(self.oldest[block]) && up(self.newest[block])) {
                continue;
            }
            for bit in ones(*word) {
                if !up(self.heartbeat[block * WORD + bit]) {
                    *word &= !(1 << bit);
                }
            }
        }
        Ok(())
    }
}
