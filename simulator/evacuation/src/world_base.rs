//! The common base of all worlds: time, hosts, the broker between hosts and schedulers, and their
//! faults.

use crate::Mutation;
use crate::agent::{Agent, HostAction};
use crate::broker::Broker;
use crate::event_log::EventLog;
use crate::fault::{FaultCounts, FaultKind};
use crate::hypervisor::CallFate;
use crate::script::Op;
use crate::violation::{BrokenInvariant, Invariant};
use ebbtide_agent_protocol::ActionId;
use ebbtide_model::{Seconds, Timestamp};

/// Start time of every simulated world, in milliseconds since 1970: 2026-02-02 02:40:00 UTC. The
/// value is arbitrary but fixed, so that the same seed always gives the same run.
pub(crate) const BEGIN: i64 = 1_770_000_000_000;

/// Time, hosts, broker, and what was seen.
pub(crate) struct WorldBase {
    pub(crate) now: Timestamp,
    pub(crate) broker: Broker,
    pub(crate) agents: Vec<Agent>,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) event_log: EventLog,
    pub(crate) faults: FaultCounts,
    pub(crate) broken: Option<BrokenInvariant>,
}

impl WorldBase {
    pub(crate) fn new(agents: Vec<Agent>, mutation: Option<Mutation>, event_log: EventLog) -> Self {
        Self {
            now: Timestamp::from_millis(BEGIN),
            broker: Broker::new(agents.len()),
            agents,
            mutation,
            event_log,
            faults: FaultCounts::default(),
            broken: None,
        }
    }

    pub(crate) fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The first broken promise counts; what follows may be its consequence.
    pub(crate) fn fail(&mut self, promise: Invariant, what: String) {
        if self.broken.is_none() {
            self.broken = Some((promise, what));
        }
    }

    pub(crate) fn millis(&self) -> i64 {
        self.now.as_millis() - BEGIN
    }

    pub(crate) fn log(&mut self, words: impl FnOnce(&EventLog) -> String) {
        let at = self.millis();
        self.event_log.log(at, words);
    }

    pub(crate) fn fault(&mut self, fault: FaultKind, words: impl FnOnce() -> String) {
        self.faults.add(fault);
        self.log(|_| format!("FAULT: {}", words()));
    }

    pub(crate) fn host_of(&self, a: u32) -> usize {
        a as usize % self.agents.len()
    }

    // ---- how things move ----

    /// A host takes the next message of its queue.
    pub(crate) fn take_message(&mut self, host: usize) -> bool {
        let (queue, agent) = (&mut self.broker.agents[host], &mut self.agents[host]);
        for message in std::mem::take(&mut agent.returned).into_iter().rev() {
            queue.push_front(message);
        }
        if !agent.alive || agent.deaf || !self.broker.up {
            return false;
        }
        let Some(message) = queue.pop_front() else {
            return false;
        };
        self.event_log.fold_id(message.id.0);
        agent.take(self.now, message);
        true
    }

    /// A call of a hypervisor ends.
    pub(crate) fn end_call(&mut self, host: usize, b: u32, fate: CallFate) -> bool {
        let agent = &mut self.agents[host];
        let n = agent.calls.len();
        if n == 0 || agent.stuck {
            return false;
        }
        let Some(action) = agent.calls.keys().nth(b as usize % n).copied() else {
            return false;
        };
        let fate = agent.fates.pop_front().unwrap_or(fate);
        agent.complete(action, fate, self.now);
        true
    }

    /// All calls of a hypervisor end as they should.
    pub(crate) fn end_calls(&mut self, host: usize) -> bool {
        let agent = &mut self.agents[host];
        if agent.stuck || agent.calls.is_empty() {
            return false;
        }
        let calls: Vec<ActionId> = agent.calls.keys().copied().collect();
        for action in calls {
            let fate = agent.fates.pop_front().unwrap_or(CallFate::Works);
            agent.complete(action, fate, self.now);
        }
        true
    }

    /// The broker takes the next report of a host.
    pub(crate) fn publish_one(&mut self, host: usize, lost: bool) -> bool {
        if !self.broker.up {
            return false;
        }
        let Some(message) = self.agents[host].publish(self.now, lost) else {
            return false;
        };
        self.broker.reports.push_back(message);
        true
    }

    /// What hosts have done to guests since it was last asked. What they have done wrong breaks a
    /// promise.
    pub(crate) fn deeds(&mut self) -> Vec<(usize, HostAction)> {
        let mut deeds = Vec::new();
        for host in 0..self.agents.len() {
            if let Some((promise, what)) = self.agents[host].broken.take() {
                self.fail(promise, what);
            }
            let done = std::mem::take(&mut self.agents[host].deeds);
            deeds.extend(done.into_iter().map(|deed| (host, deed)));
        }
        deeds
    }

    // ---- what goes wrong ----

    /// Something bad happens to an agent.
    pub(crate) fn harm_agent(&mut self, op: Op, a: u32, b: u32) {
        let host = self.host_of(a);
        let name = self.agents[host].name.clone();
        let now = self.now;
        let agent = &mut self.agents[host];
        match op {
            Op::CrashAgent => {
                if !agent.alive {
                    agent.restart(now);
                    return self.log(|_| format!("the agent of {name} is back"));
                }
                agent.crash(now);
                match b % 4 {
                    0 => {}
                    1 => agent.back_at = Some(now.plus(Seconds(1 + b / 4 % 40))),
                    _ => agent.restart(now),
                }
                let back = self.agents[host].alive;
                self.fault(FaultKind::AgentCrash, || {
                    let then = if back { ", and started again" } else { "" };
                    format!("the agent of {name} is killed{then}")
                });
            }
            Op::TearAgent => {
                agent.dies_in = Some(b % 6);
                agent.back_at = Some(now.plus(Seconds(b / 8 % 10)));
                self.fault(FaultKind::AgentTorn, || {
                    format!("the agent of {name} dies after {} more effects", b % 6)
                });
            }
            Op::FillAgentDisk => {
                let full = !agent.disk_full;
                agent.disk_full = full;
                if full {
                    self.fault(FaultKind::AgentDiskFull, || {
                        format!("the disk of {name} is full")
                    });
                }
            }
            Op::SkewAgent => {
                let skew = i64::from(b % 6001) - 3000;
                agent.set_clock(skew, now);
                self.fault(FaultKind::AgentClock, || {
                    format!("the clock of {name} is set, it is {skew} ms ahead now")
                });
            }
            _ => {
                agent.lie = Some(b);
                let (fault, what) = if b % 4 < 2 {
                    (FaultKind::AgentLiesRoom, "room")
                } else {
                    (FaultKind::AgentLiesServers, "servers")
                };
                self.fault(fault, || {
                    format!("{name} lies about its {what} in its next heartbeat")
                });
            }
        }
    }

    /// Something bad happens to a hypervisor.
    pub(crate) fn harm_hypervisor(&mut self, op: Op, a: u32, b: u32) {
        let host = self.host_of(a);
        let name = self.agents[host].name.clone();
        match op {
            Op::BadCall => {
                let (fault, fate, words) = bad_call(b);
                self.agents[host].fates.push_back(fate);
                self.fault(fault, || {
                    format!("the next call of the hypervisor of {name} {words}")
                });
                self.end_call(host, b / 8, fate);
            }
            Op::Stick => {
                let stuck = !self.agents[host].stuck;
                self.agents[host].stuck = stuck;
                if stuck {
                    self.fault(FaultKind::HypervisorStuck, || {
                        format!("the hypervisor of {name} answers nothing")
                    });
                }
            }
            _ => {
                let clock = self.agents[host].clock(self.now);
                self.agents[host].hypervisor.settle_all_late(clock);
                self.agents[host].look_who_ended();
                let guests = &mut self.agents[host].hypervisor.guests;
                let id = guests.keys().nth(b as usize % guests.len().max(1)).copied();
                if let Some(id) = id {
                    guests.remove(&id);
                    self.fault(FaultKind::GuestLost, || {
                        format!("a guest of {name} is gone behind everybody's back")
                    });
                    self.log(|s| format!("that was {}", s.of(id.0)));
                }
            }
        }
    }

    /// Something bad happens between broker and agents.
    pub(crate) fn harm_messages(&mut self, op: Op, a: u32, b: u32) {
        let host = self.host_of(a);
        let name = self.agents[host].name.clone();
        match op {
            Op::ToggleBroker => {
                self.broker.up = !self.broker.up;
                if self.broker.up {
                    self.log(|_| "the broker is back".to_owned());
                } else {
                    self.fault(FaultKind::BrokerAway, || "the broker is away".to_owned());
                }
            }
            Op::Partition if b.is_multiple_of(2) => {
                let deaf = !self.agents[host].deaf;
                self.agents[host].deaf = deaf;
                if deaf {
                    self.fault(FaultKind::PartitionIn, || {
                        format!("nothing reaches {name} any more")
                    });
                }
            }
            Op::Partition => {
                let mute = !self.agents[host].mute;
                self.agents[host].mute = mute;
                if mute {
                    self.fault(FaultKind::PartitionOut, || {
                        format!("nothing of {name} is heard any more")
                    });
                }
            }
            Op::LoseConfirm => {
                if self.publish_one(host, true) {
                    self.fault(FaultKind::ConfirmLost, || {
                        format!("the broker has a report of {name}, and its confirmation is lost")
                    });
                }
            }
            Op::Duplicate => {
                if self.broker.duplicate(a, b) {
                    self.fault(FaultKind::Duplicate, || {
                        "a message will come twice".to_owned()
                    });
                }
            }
            Op::Reorder => {
                if self.broker.reorder(a, b) {
                    self.fault(FaultKind::Reorder, || {
                        "two messages change places".to_owned()
                    });
                }
            }
            _ => {
                if self.broker.lose_heartbeat() {
                    self.fault(FaultKind::HeartbeatLost, || {
                        "a heartbeat is lost".to_owned()
                    });
                }
            }
        }
    }

    /// No more faults here; agents that are away come back.
    pub(crate) fn mend_hosts(&mut self) {
        self.log(|_| "what is away, full, cut off or stuck is mended".to_owned());
        self.broker.up = true;
        let now = self.now;
        for agent in &mut self.agents {
            agent.disk_full = false;
            agent.dies_in = None;
            agent.stuck = false;
            agent.deaf = false;
            agent.mute = false;
            agent.lie = None;
            agent.fates.clear();
            let clock = agent.clock(now);
            agent.hypervisor.settle_all_late(clock);
            agent.look_who_ended();
            if !agent.alive {
                agent.restart(now);
            }
        }
    }
}

/// How a call goes wrong.
fn bad_call(b: u32) -> (FaultKind, CallFate, &'static str) {
    let late = |later| CallFate::TimesOut { later };
    match b % 8 {
        0..3 => (FaultKind::CallFails, CallFate::Fails, "fails"),
        3..5 => (
            FaultKind::CallLies,
            CallFate::WorksButFails,
            "takes effect and says that it failed",
        ),
        5 => (
            FaultKind::CallTimesOut,
            late(true),
            "does not end in time, and takes effect later",
        ),
        6 => (FaultKind::CallTimesOut, late(false), "does not end in time"),
        _ => (
            FaultKind::NoRoom,
            CallFate::NoRoom,
            "says that there is no room",
        ),
    }
}
