//! What can go wrong with schedulers, Placement, ledger and callers.

use super::world::NovaWorld;
use crate::fault::FaultKind;
use crate::script::Op;

/// More schedulers are not started.
const MOST: usize = 6;

impl NovaWorld {
    /// One fault. What has nothing to act on does nothing, and is not counted.
    pub(super) fn inject(&mut self, op: Op, a: u32, b: u32) {
        match op {
            Op::CrashScheduler | Op::PauseScheduler | Op::SkewScheduler | Op::LoseCommit => {
                self.harm_scheduler(op, a, b);
            }
            Op::CrashAgent | Op::TearAgent | Op::FillAgentDisk | Op::SkewAgent => {
                self.harm_agent(op, a, b);
            }
            Op::Lie => {
                if self.placement.touch(b as usize) {
                    self.fault(FaultKind::PlacementChanged, || {
                        "another process writes an allocation once more".to_owned()
                    });
                }
            }
            Op::FailCommit => {
                self.ledger.fail_after = Some(b % 3);
                self.fault(FaultKind::CommitFails, || {
                    "a write of the ledger fails soon".to_owned()
                });
            }
            Op::FillDisk => {
                let away = !self.ledger.away;
                self.ledger.away = away;
                if away {
                    self.fault(FaultKind::LedgerAway, || "the ledger is away".to_owned());
                }
            }
            Op::LoseAnswer => {
                self.placement.lose_answer();
                self.fault(FaultKind::PlacementSilent, || {
                    "the next answer of Placement is lost".to_owned()
                });
            }
            Op::LoseHeartbeat => {
                self.placement.lose_question();
                self.fault(FaultKind::PlacementAway, || {
                    "the next question to Placement is lost".to_owned()
                });
            }
            Op::BadCall | Op::Stick | Op::LoseGuest => self.harm_hypervisor(op, a, b),
            Op::Cancel => self.cancel(a, b),
            _ => self.harm_messages(op, a, b),
        }
    }

    fn harm_scheduler(&mut self, op: Op, a: u32, b: u32) {
        let who = a as usize % self.schedulers.len();
        let name = self.schedulers[who].name.clone();
        match op {
            Op::CrashScheduler if self.schedulers[who].replaced => {}
            Op::CrashScheduler
                if self.schedulers[who].paused && b % 4 < 2 && self.schedulers.len() < MOST =>
            {
                self.fault(FaultKind::SchedulerTwice, || {
                    format!("{name} is taken for dead, and a second one is started")
                });
                self.start_twice(who);
            }
            Op::CrashScheduler => {
                let was_up = self.schedulers[who].up;
                self.schedulers[who].up = !was_up || b.is_multiple_of(2);
                if was_up {
                    self.fault(FaultKind::SchedulerCrash, || format!("{name} is killed"));
                    self.kill(who);
                } else {
                    self.log(|_| format!("{name} is back"));
                }
            }
            Op::LoseCommit if b.is_multiple_of(3) => self.ledger.lose_after = Some(b / 3 % 4),
            Op::LoseCommit => {
                self.schedulers[who].dies_in = Some(b % 4);
                self.fault(FaultKind::SchedulerCrash, || {
                    format!("{name} dies soon, after doing and before writing")
                });
            }
            Op::PauseScheduler => {
                let paused = !self.schedulers[who].paused;
                self.schedulers[who].paused = paused;
                if paused {
                    self.fault(FaultKind::SchedulerPause, || format!("{name} stands still"));
                    if b.is_multiple_of(2) {
                        self.redeliver(who);
                    }
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

    /// True if the process dies here: something is done, and what came of it is not written.
    pub(super) fn dies_before_writing(&mut self, who: usize) -> bool {
        match self.schedulers[who].dies_in {
            None => false,
            Some(0) => {
                let name = self.schedulers[who].name.clone();
                self.log(|_| format!("{name} dies before it writes what it has done"));
                self.kill(who);
                true
            }
            Some(n) => {
                self.schedulers[who].dies_in = Some(n - 1);
                false
            }
        }
    }

    /// The caller goes away, or its instance is deleted during scheduling.
    fn cancel(&mut self, a: u32, b: u32) {
        let waiting = self.unsettled.iter().copied();
        let waiting: Vec<usize> = waiting
            .filter(|n| self.requests[*n].waits && !self.requests[*n].deleted)
            .collect();
        let Some(n) = waiting.get(a as usize % waiting.len().max(1)).copied() else {
            return;
        };
        self.fault(FaultKind::Cancelled, || "the caller goes away".to_owned());
        if b.is_multiple_of(2) {
            self.requests[n].waits = false;
        } else {
            self.remove(n);
        }
    }

    /// No more faults; everybody who is away comes back.
    pub(super) fn mend(&mut self) {
        self.mend_hosts();
        self.ledger.away = false;
        self.ledger.fail_after = None;
        self.ledger.lose_after = None;
        self.placement.mend();
        for scheduler in &mut self.schedulers {
            scheduler.up = true;
            scheduler.paused = false;
            scheduler.dies_in = None;
        }
        self.look_at_hosts();
    }
}
