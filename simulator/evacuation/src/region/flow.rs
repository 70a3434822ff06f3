//! How things move: messages to hosts and back, calls of hypervisors, and time.

use super::world::RegionWorld;
use crate::violation::Invariant;
use ebbtide_model::Timestamp;
use ebbtide_model::message::Body;
use ebbtide_region::Tick;

/// More rounds than any burst of messages takes.
const ROUNDS: u32 = 2_000;

impl RegionWorld {
    /// A host takes the next message of its queue.
    pub(super) fn deliver(&mut self, host: usize) -> bool {
        let taken = self.take_message(host);
        if taken {
            self.look_at_hosts();
        }
        taken
    }

    fn complete_all(&mut self, host: usize) -> bool {
        let ended = self.end_calls(host);
        if ended {
            self.look_at_hosts();
        }
        ended
    }

    /// A heartbeat; what does not reach the broker is lost.
    pub(super) fn heartbeat(&mut self, host: usize) {
        let now = self.now;
        let reaches = self.broker.up && !self.agents[host].mute;
        let Some(beat) = self.agents[host].beat(now).filter(|_| reaches) else {
            return;
        };
        let hypervisor = &mut self.base.agents[host].hypervisor;
        if let Body::Heartbeat(said) = &beat.body
            && (said.inventory != hypervisor.inventory || said.servers != hypervisor.hosted())
        {
            hypervisor.guards = true;
            self.liars[host] = true;
        }
        self.broker.reports.push_back(beat);
    }

    fn beats_that_are_due(&mut self) {
        for host in 0..self.agents.len() {
            if self.agents[host].beat_is_due(self.now) {
                self.heartbeat(host);
            }
        }
    }

    /// Everything that can move without time passing moves, until nothing does.
    pub(super) fn flow(&mut self) {
        for _ in 0..ROUNDS {
            if self.broken.is_some() {
                return;
            }
            let mut moved = false;
            for who in 0..self.schedulers.len() {
                for host in 0..self.agents.len() {
                    while self.send_one(who, host, false) {
                        moved = true;
                    }
                }
                moved |= self.pass_confirmations(who);
            }
            for host in 0..self.agents.len() {
                while self.deliver(host) {
                    moved = true;
                }
                moved |= self.complete_all(host);
                while self.publish_one(host, false) {
                    moved = true;
                }
            }
            if let Some(who) = self.leader() {
                let before = self.broker.reports.len();
                self.read(who, 8);
                moved |= self.broker.reports.len() != before;
            }
            if !moved {
                return;
            }
        }
        self.fail(
            Invariant::EverythingEnds,
            "messages go back and forth without end".to_owned(),
        );
    }

    /// Time passes; everybody looks at the clock.
    pub(super) fn pass(&mut self, millis: i64) {
        self.now = Timestamp::from_millis(self.now.as_millis() + millis);
        for host in 0..self.agents.len() {
            let now = self.now;
            self.agents[host].tick(now);
        }
        self.look_at_hosts();
        self.beats_that_are_due();
        for scheduler in &mut self.schedulers {
            scheduler.rests = false;
        }
        self.lead();
        for who in 0..self.schedulers.len() {
            if self.schedulers[who].leads() {
                let _ = self.input(who, vec![Tick]);
            } else if self.shared && self.schedulers[who].works() {
                self.catch_up(who);
                let clock = self.schedulers[who].clock(self.now);
                if let Some(region) = self.schedulers[who].region.as_mut() {
                    region.observe(clock);
                }
            }
        }
    }

    /// Time passes, a second at a time, and everything moves meanwhile.
    pub(super) fn run(&mut self, seconds: u32) {
        for _ in 0..seconds {
            if self.broken.is_some() {
                return;
            }
            self.pass(1000);
            self.retry_requests();
            self.flow();
        }
    }
}
