//! What can go wrong, made to go wrong.

use super::world::RegionWorld;
use crate::fault::FaultKind;
use crate::script::Op;
use ebbtide_model::{ServerId, ServerStatus};
use ebbtide_region::DeleteServer;

impl RegionWorld {
    /// One fault. What has nothing to act on does nothing, and is not counted.
    pub(super) fn inject(&mut self, op: Op, a: u32, b: u32) {
        match op {
            Op::CrashScheduler | Op::PauseScheduler | Op::SkewScheduler => {
                self.harm_scheduler(op, a, b);
            }
            Op::CrashAgent | Op::TearAgent | Op::FillAgentDisk | Op::SkewAgent | Op::Lie => {
                self.harm_agent(op, a, b);
            }
            Op::FailCommit => self.database.fail_after = Some(b % 3),
            Op::LoseCommit => self.database.lose_after = Some(b % 3),
            Op::FillDisk => {
                let full = !self.database.disk_full;
                self.database.disk_full = full;
                if full {
                    self.fault(FaultKind::DatabaseDiskFull, || {
                        "the database's disk is full".to_owned()
                    });
                }
            }
            Op::BadCall | Op::Stick | Op::LoseGuest => self.harm_hypervisor(op, a, b),
            Op::LoseAnswer => self.tenants.lose_answer = true,
            Op::Cancel => self.cancel(a),
            Op::LoseConfirm => self.lose_confirm(a, b),
            _ => self.harm_messages(op, a, b),
        }
    }

    fn harm_scheduler(&mut self, op: Op, a: u32, b: u32) {
        let who = self.scheduler_of(a);
        let name = self.schedulers[who].name.clone();
        match op {
            Op::CrashScheduler => {
                let was_up = self.schedulers[who].up;
                self.schedulers[who].forget();
                self.schedulers[who].paused = false;
                // Half of them are back at once, the others after the next such step.
                self.schedulers[who].up = !was_up || b.is_multiple_of(2);
                if was_up {
                    self.fault(FaultKind::SchedulerCrash, || format!("{name} is killed"));
                }
                self.lead();
            }
            Op::PauseScheduler => {
                let paused = !self.schedulers[who].paused;
                self.schedulers[who].paused = paused;
                if paused {
                    self.fault(FaultKind::SchedulerPause, || format!("{name} stands still"));
                } else {
                    self.log(|_| format!("{name} goes on as if nothing had been"));
                }
            }
            _ => {
                let skew = i64::from(b % 4001) - 2000;
                self.schedulers[who].skew = skew;
                self.fault(FaultKind::SchedulerClock, || {
                    format!("the clock of {name} is set, it is {skew} ms ahead now")
                });
            }
        }
    }

    /// A confirmation of the broker is lost, on the way to a scheduler or to an agent.
    fn lose_confirm(&mut self, a: u32, b: u32) {
        if !b.is_multiple_of(2) {
            return self.harm_messages(Op::LoseConfirm, a, b);
        }
        let (host, who) = (self.host_of(a), self.scheduler_of(b / 2));
        if self.send_one(who, host, true) {
            self.fault(FaultKind::ConfirmLost, || {
                "the broker has a message, and its confirmation is lost".to_owned()
            });
        }
    }

    /// The caller goes away while its request is under way.
    fn cancel(&mut self, a: u32) {
        let waits = |status| matches!(status, ServerStatus::Waiting | ServerStatus::Building);
        if let Some(id) = self.some_server(a, waits) {
            self.fault(FaultKind::Cancelled, || "the caller goes away".to_owned());
            self.log_delete(id);
            self.command(DeleteServer(id));
        }
    }

    /// A server in one of these states.
    pub(super) fn some_server(
        &self,
        a: u32,
        wanted: impl Fn(ServerStatus) -> bool,
    ) -> Option<ServerId> {
        let all = self.database.servers.values();
        let ids: Vec<ServerId> = all.filter(|s| wanted(s.status)).map(|s| s.id).collect();
        ids.get(a as usize % ids.len().max(1)).copied()
    }

    /// No more faults; everybody who is away comes back.
    pub(super) fn mend(&mut self) {
        self.mend_hosts();
        self.database.disk_full = false;
        self.database.fail_after = None;
        self.database.lose_after = None;
        self.tenants.lose_answer = false;
        for scheduler in &mut self.schedulers {
            scheduler.up = true;
            scheduler.paused = false;
        }
        self.look_at_hosts();
    }
}
