//! Random worlds for a job: instances that come and go, notices, checkpoints that fail or hang,
//! users that stop. What is promised holds in all.

#![allow(
    clippy::unwrap_used,
    reason = "test code: clippy knows test functions, but not their helpers in this folder"
)]

use ebbtide_lifetime::distributions::Exponential;
use ebbtide_run::{
    CheckpointReason, CheckpointSchedule, Rules, RunAction, RunEnd, RunEvent, RunJob, RunRecord,
    RunTime, Span,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the world does next, chosen by chance; what does not fit the moment is left out.
#[derive(Debug, Clone, Copy)]
enum Whim {
    Pass(u64),
    Notice(u64),
    Spare,
    Take,
    Fail,
    Finish,
    Killed,
    RestoreFails,
    Risk,
    Stop,
    Save,
    Crash,
}

fn whim() -> impl Strategy<Value = Whim> {
    prop_oneof![
        8 => (1u64..30_000).prop_map(Whim::Pass),
        3 => (0u64..40_000).prop_map(Whim::Notice),
        1 => Just(Whim::Spare),
        3 => Just(Whim::Take),
        2 => Just(Whim::Fail),
        1 => Just(Whim::Finish),
        1 => Just(Whim::Killed),
        1 => Just(Whim::RestoreFails),
        1 => Just(Whim::Risk),
        1 => Just(Whim::Stop),
        1 => Just(Whim::Save),
        1 => Just(Whim::Crash),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let rhythm = prop_oneof![
        8 => (1_000u64..60_000).prop_map(|ms| CheckpointSchedule::Every(Span(ms))),
        1 => (20_000u64..200_000).prop_map(|ms| {
            let rate = 1.0 / Span(ms).hours();
            CheckpointSchedule::Model(Arc::new(Exponential::new(rate, f64::INFINITY).unwrap()))
        }),
        2 => Just(CheckpointSchedule::Never),
    ];
    (
        rhythm,
        proptest::option::of(30_000u64..600_000),
        500u64..5_000,
        1usize..4,
        any::<bool>(),
    )
        .prop_map(|(rhythm, length, cost, keep, releases)| Rules {
            length: length.map(Span),
            cost: Span(cost),
            timeout: Span(20_000),
            keep,
            releases,
            ..Rules::new(rhythm)
        })
}

/// What is really there, beside the machine.
struct JobWorld {
    rules: Rules,
    job: RunJob,
    now: RunTime,
    /// Complete checkpoints with their work, as they lie on the storage.
    stored: Vec<(u64, Span)>,
    /// A checkpoint that is being written, with the work in it.
    writing: Option<(u64, Span)>,
    process: bool,
    restoring: bool,
    instance: bool,
    awaited: bool,
    deadline: Option<RunTime>,
    ended: Option<RunEnd>,
    lost: Span,
    /// The most work that any complete checkpoint had.
    best: Span,
    discarded: BTreeSet<u64>,
}

impl JobWorld {
    fn new(rules: Rules) -> Self {
        let job = RunJob::new(rules.clone(), RunRecord::default()).unwrap();
        let mut world = Self {
            rules,
            job,
            now: RunTime::default(),
            stored: Vec::new(),
            writing: None,
            process: false,
            restoring: false,
            instance: false,
            awaited: true,
            deadline: None,
            ended: None,
            lost: Span::ZERO,
            best: Span::ZERO,
            discarded: BTreeSet::new(),
        };
        world.bring(Span::ZERO);
        world
    }

    fn bring(&mut self, age: Span) {
        (self.instance, self.awaited, self.deadline) = (true, false, None);
        self.tell(RunEvent::Instance { age });
    }

    fn tell(&mut self, event: RunEvent) {
        self.job.account(self.now);
        let unsaved = self.job.unsaved();
        let actions = self.job.handle(self.now, event);
        if self.ended.is_some() {
            assert!(actions.is_empty(), "after the end there is {actions:?}");
        }
        for action in actions {
            self.act(action, unsaved);
        }
    }

    fn act(&mut self, action: RunAction, unsaved: Span) {
        assert!(self.ended.is_none(), "{action:?} after the end");
        match action {
            RunAction::Start => {
                assert!(self.stored.is_empty(), "work that was saved is thrown away");
                self.run();
            }
            RunAction::Restore(id) => {
                assert!(
                    self.stored.iter().any(|(s, _)| *s == id),
                    "{id} is not complete"
                );
                self.restoring = true;
                self.run();
            }
            RunAction::Save { id, why } => {
                assert!(self.process && !self.restoring && self.writing.is_none());
                assert!(
                    self.stored.iter().all(|(stored, _)| *stored < id),
                    "a number twice"
                );
                self.fits(why);
                self.writing = Some((id, self.job.work()));
            }
            RunAction::Abandon(id) => {
                assert_eq!(self.writing.take().map(|(id, _)| id), Some(id));
            }
            RunAction::Discard(id) => {
                let newer = self.stored.iter().filter(|(s, _)| *s > id).count();
                assert!(newer >= self.rules.keep, "only {newer} are newer than {id}");
                self.stored.retain(|(stored, _)| *stored != id);
                self.discarded.insert(id);
            }
            RunAction::Kill => {
                (self.process, self.restoring, self.writing) = (false, false, None);
                self.lost = self.lost.plus(unsaved);
            }
            RunAction::Release => assert!(self.rules.releases && !self.process),
            RunAction::Await => {
                assert!(!self.process);
                self.awaited = true;
            }
            RunAction::Finish(ending) => {
                assert!(self.ended.replace(ending).is_none(), "it ends twice");
                let by_itself = matches!(ending, RunEnd::Exited { .. } | RunEnd::Killed { .. });
                assert!(!self.process || by_itself);
            }
        }
    }

    fn run(&mut self) {
        assert!(self.instance, "there is nothing to run on");
        assert!(!self.process, "it runs twice");
        self.process = true;
    }

    /// No checkpoint is begun that cannot end before the deadline, unless there is nothing to lose
    /// by it.
    fn fits(&self, why: CheckpointReason) {
        let Some(deadline) = self.deadline else {
            assert!(!matches!(
                why,
                CheckpointReason::Notice | CheckpointReason::LastTry
            ));
            return;
        };
        let cost = self.job.record().safe_cost().unwrap_or(self.rules.cost);
        let fits = self.now.plus(cost) <= deadline;
        let ends = self.rules.length.is_some_and(|length| {
            let left = length.minus(self.job.work());
            left > Span::ZERO && self.now.plus(left) <= deadline
        });
        assert!(
            fits || why == CheckpointReason::Stop || (why == CheckpointReason::LastTry && !ends),
            "{why:?} at {:?} takes {cost:?}, the deadline is {deadline:?}",
            self.now
        );
    }

    fn ready(&mut self) {
        if self.process && self.job.unsaved() == Span::ZERO && self.writing.is_none() {
            self.restoring = false;
            self.tell(RunEvent::Started);
        }
    }

    fn pass(&mut self, millis: u64) {
        let until = self.now.plus(Span(millis));
        while let Some(wake) = self.job.wake_at().filter(|wake| *wake <= until) {
            let before = (self.job.wake_at(), self.now, self.writing);
            self.now = self.now.max(wake);
            self.tell(RunEvent::Time);
            let after = (self.job.wake_at(), self.now, self.writing);
            assert_ne!(before, after, "it wants to be woken again and again");
        }
        self.now = until;
    }

    fn whim(&mut self, whim: Whim) {
        match whim {
            Whim::Pass(millis) => {
                self.ready();
                self.pass(millis);
                if let Some((id, work)) = self.writing.take_if(|_| millis % 3 != 0) {
                    self.stored.push((id, work));
                    self.best = self.best.max(work);
                    self.tell(RunEvent::Saved);
                }
                if self.awaited && self.ended.is_none() {
                    self.bring(Span(millis));
                }
            }
            Whim::Notice(grace) if self.instance => {
                let deadline = self.now.plus(Span(grace));
                self.deadline = Some(deadline);
                self.tell(RunEvent::Notice { deadline });
            }
            Whim::Spare if self.deadline.take().is_some() => self.tell(RunEvent::Spared),
            Whim::Take if self.instance => {
                (self.instance, self.deadline) = (false, None);
                self.tell(RunEvent::Gone);
            }
            Whim::Fail if self.writing.take().is_some() => self.tell(RunEvent::SaveFailed),
            Whim::Finish if self.process && !self.restoring => {
                self.tell(RunEvent::Exited { code: 3 });
                self.process = false;
            }
            Whim::Killed if self.process => {
                self.job.account(self.now);
                self.lost = self.lost.plus(self.job.unsaved());
                self.tell(RunEvent::Killed { code: 143 });
                assert_eq!(self.ended.take(), Some(RunEnd::Killed { code: 143 }));
                assert_eq!(self.job.record().exit, None, "the job has not ended");
                // The same command line goes on, from what was saved.
                self.begin_again();
            }
            Whim::RestoreFails if self.restoring => {
                (self.process, self.restoring) = (false, false);
                self.tell(RunEvent::RestoreFailed);
            }
            Whim::Risk => self.tell(RunEvent::Risk),
            Whim::Stop => self.tell(RunEvent::Stop),
            Whim::Save => self.tell(RunEvent::Save),
            Whim::Crash if self.ended.is_none() => {
                self.job.account(self.now);
                self.lost = self.lost.plus(self.job.unsaved());
                self.begin_again();
            }
            _ => {}
        }
    }

    /// The runner and the process are lost; the record is the one written last.
    fn begin_again(&mut self) {
        let record = serde_json::to_string(self.job.record()).unwrap();
        let record = RunRecord::parse(&record).unwrap();
        (self.process, self.restoring, self.writing) = (false, false, None);
        self.job = RunJob::new(self.rules.clone(), record).unwrap();
        self.now = RunTime::default();
        self.bring(Span(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_complete_checkpoint_is_never_lost_and_a_job_ends_once(
        rules in rules(),
        whims in proptest::collection::vec(whim(), 1..60),
    ) {
        let mut world = JobWorld::new(rules);
        for whim in whims {
            world.whim(whim);
            let kept: Vec<u64> = world.job.record().checkpoints.iter().map(|c| c.id).collect();
            let stored: Vec<u64> = world.stored.iter().map(|(id, _)| *id).collect();
            prop_assert_eq!(kept, stored, "the record and the storage differ");
        }
    }

    #[test]
    fn no_interruption_without_notice_costs_more_than_an_interval(
        interval in 1_000u64..30_000,
        cost in 1u64..3_000,
        lives in proptest::collection::vec(0u64..120_000, 1..8),
    ) {
        let rules = Rules { length: None, ..Rules::new(CheckpointSchedule::Every(Span(interval))) };
        let mut job = RunJob::new(rules, RunRecord::default()).unwrap();
        let mut now = RunTime(0);
        for lasts in lives {
            let end = now.plus(Span(lasts));
            let before = job.record().lost;
            let mut actions = job.handle(now, RunEvent::Instance { age: Span::ZERO });
            prop_assert_eq!(actions.len(), 1);
            actions = job.handle(now, RunEvent::Started);
            prop_assert!(actions.is_empty());
            // It lives by its own clock until it is taken.
            while let Some(wake) = job.wake_at().filter(|wake| *wake < end) {
                now = wake;
                actions = job.handle(now, RunEvent::Time);
                if !matches!(actions[..], [RunAction::Save { why: CheckpointReason::Planned, .. }]) {
                    prop_assert!(false, "{:?}", actions);
                }
                if now.plus(Span(cost)) > end {
                    break;
                }
                now = now.plus(Span(cost));
                job.handle(now, RunEvent::Saved);
            }
            now = end;
            job.account(now);
            let unsaved = job.unsaved();
            prop_assert!(unsaved <= Span(interval), "{unsaved:?} of {interval}");
            let actions = job.handle(now, RunEvent::Gone);
            prop_assert_eq!(actions.last(), Some(&RunAction::Await));
            job.handle(now, RunEvent::Instance { age: Span::ZERO });
            prop_assert_eq!(job.record().lost.minus(before), unsaved);
            job.handle(now, RunEvent::Started);
            job.handle(now, RunEvent::Gone);
        }
        // What the comparison says of the same rhythm on the same lives is what happened.
        let again = ebbtide_run::outcome(&job.record().lives, Some(Span(interval)), Span(cost));
        prop_assert_eq!(again.checkpoints, job.record().saved);
        prop_assert_eq!(again.done, job.record().newest().map_or(Span::ZERO, |c| c.work));
        prop_assert_eq!(again.lost, job.record().lost);
    }

    #[test]
    fn work_and_loss_add_up_to_the_time_that_was_there(
        rules in rules(),
        whims in proptest::collection::vec(whim(), 1..60),
    ) {
        let mut world = JobWorld::new(rules);
        for whim in whims {
            world.whim(whim);
        }
        let record = world.job.record();
        let worked = record.lives.iter().fold(0, |sum, life| sum + life.reached.0 - life.from.0);
        for life in &record.lives {
            let busy = life.restoring.plus(life.saving).plus(life.reached.minus(life.from));
            prop_assert!(busy <= life.lasted, "{life:?}");
        }
        // All that was ever worked is either in the job now or was done in vain.
        prop_assert_eq!(worked, world.job.work().0 + record.lost.0);
    }
}
