//! Executes a job: passes events to the state machine and carries out its actions.

use super::fault::RunFault;
use super::method::{CANNOT_RESTORE, Env, SaveMethod, Saver, reason};
use super::place::{InstanceNews, JobHost};
use super::state::{StateContents, StateDir};
use crate::process::{self, Tree};
use ebbtide_run::{RunAction, RunEnd, RunEvent, RunJob, RunTime, Span};
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::errors::ProgramError;
use ebbtide_shell::hours::Hours;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior};

/// Interval for storing the account without events. A crash loses at most this much of it.
const WRITE_DOWN: Duration = Duration::from_secs(5);

/// A job that is being executed.
#[derive(Debug)]
pub(super) struct Engine<'a> {
    context: &'a mut Context,
    job: RunJob,
    dir: StateDir,
    stored: StateContents,
    method: SaveMethod,
    place: JobHost,
    began: Instant,
    env: Env,
    process: Option<Tree>,
    saver: Option<Saver>,
    /// Checkpoints that may be removed once the state is stored.
    discards: Vec<u64>,
    /// Whether the last attempt to store the state failed.
    unwritten: bool,
    why: &'static str,
}

/// What woke the engine.
enum WakeReason {
    Process(std::io::Result<std::process::ExitStatus>),
    Saver(Result<Option<[u64; 2]>, String>),
    News(InstanceNews),
    Stop,
    Save,
    Time,
    WriteDown,
}

#[derive(Debug)]
pub(super) struct RunResult {
    /// How it ended.
    pub(super) ending: RunEnd,
    /// The account.
    pub(super) stored: StateContents,
    /// How long this run took.
    pub(super) took: Span,
}

impl<'a> Engine<'a> {
    /// A new engine, not started yet.
    pub(super) fn new(
        context: &'a mut Context,
        job: RunJob,
        dir: StateDir,
        stored: StateContents,
        method: SaveMethod,
        place: JobHost,
    ) -> Self {
        Self {
            context,
            job,
            dir,
            stored,
            method,
            place,
            began: clock::instant(),
            env: Env::new(),
            process: None,
            saver: None,
            discards: Vec::new(),
            unwritten: false,
            why: "planned",
        }
    }

    /// Runs until the job has ended, or its user has stopped it.
    ///
    /// # Errors
    /// Errors after which the job cannot continue. Saved work remains.
    pub(super) async fn run(mut self) -> Result<RunResult, CliError> {
        let done = self.drive().await;
        // Whatever the result is, no process of the run may remain.
        self.end_saver().await;
        self.end_process().await;
        self.stored.running = None;
        let left = self.place.leave().await;
        let written = self.write();
        match left {
            Ok(Some(words)) => self.say(&words),
            Ok(None) => {}
            Err(error) => self.say(&format!("{}: {error}", error.code())),
        }
        let ending = done?;
        written?;
        Ok(RunResult {
            ending,
            stored: self.stored,
            took: Span(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)),
        })
    }

    async fn drive(&mut self) -> Result<RunEnd, CliError> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut save = signal(SignalKind::user_defined1())?;
        let mut write_down = tokio::time::interval(WRITE_DOWN);
        write_down.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = VecDeque::new();
        if let JobHost::Here { age } = self.place {
            let age = age.unwrap_or_else(super::guest::uptime);
            self.say("this machine, of which nothing is heard");
            events.push_back(RunEvent::Instance { age });
        }
        loop {
            while let Some(event) = events.pop_front() {
                let now = self.now();
                let actions = self.job.handle(now, event);
                self.write_down();
                for action in actions {
                    if let Some(ending) = self.act(action, &mut events).await? {
                        return Ok(ending);
                    }
                }
            }
            match self
                .wait(
                    [&mut interrupt, &mut terminate, &mut hang_up, &mut save],
                    &mut write_down,
                )
                .await
            {
                WakeReason::Process(ended) => events.push_back(self.ended(ended?)),
                WakeReason::Saver(saved) => events.push_back(self.saved(saved)),
                WakeReason::News(InstanceNews::Never(error)) => return Err(error),
                WakeReason::News(news) => events.extend(self.heard(news)),
                WakeReason::Stop => {
                    self.say("asked to stop");
                    events.push_back(RunEvent::Stop);
                }
                WakeReason::Save => {
                    self.say("asked to save");
                    events.push_back(RunEvent::Save);
                }
                WakeReason::Time => events.push_back(RunEvent::Time),
                WakeReason::WriteDown => {
                    self.write_down();
                    self.reap();
                }
            }
        }
    }

    /// Reaps orphans of the command that have ended: no other code does, and each keeps a process
    /// id until then.
    fn reap(&self) {
        let process = self.process.iter().map(Tree::pid);
        let spare: Vec<i32> = process.chain(self.saver.iter().map(Saver::pid)).collect();
        process::reap(&spare);
    }

    async fn wait(
        &mut self,
        [interrupt, terminate, hang_up, save]: [&mut Signal; 4],
        write_down: &mut Interval,
    ) -> WakeReason {
        let wake = self.job.wake_at().map(|at| {
            let at = self.began + Duration::from_millis(at.0);
            tokio::time::sleep_until(at.into())
        });
        let wake = async {
            match wake {
                Some(wake) => wake.await,
                None => std::future::pending().await,
            }
        };
        let process = async {
            match &mut self.process {
                Some(process) => process.ended().await,
                None => std::future::pending().await,
            }
        };
        let saver = async {
            match &mut self.saver {
                Some(saver) => saver.done(&self.dir).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // An exit that came first is handled first.
            biased;
            ended = process => WakeReason::Process(ended),
            saved = saver => WakeReason::Saver(saved),
            _ = interrupt.recv() => WakeReason::Stop,
            _ = terminate.recv() => WakeReason::Stop,
            // The terminal is gone.
            _ = hang_up.recv() => WakeReason::Stop,
            _ = save.recv() => WakeReason::Save,
            () = wake => WakeReason::Time,
            news = self.place.next() => WakeReason::News(news),
            _ = write_down.tick() => WakeReason::WriteDown,
        }
    }

    /// Milliseconds since the start of the run.
    fn now(&self) -> RunTime {
        RunTime(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn say(&mut self, words: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        self.context
            .output
            .say(&format!("{seconds:>9.1} s  {words}"));
    }

    fn ended(&mut self, status: std::process::ExitStatus) -> RunEvent {
        self.process = None;
        // Orphans of the command are of no use any more.
        let saver: Vec<i32> = self.saver.iter().map(Saver::pid).collect();
        process::end_orphans(&saver);
        let code = process::exit_code(status);
        if code == CANNOT_RESTORE && matches!(self.method, SaveMethod::Commands { .. }) {
            // This exit code has a meaning only after a restore.
            if self.job.has_resumed() {
                self.say("the command cannot go on from this checkpoint (exit code 125)");
                return RunEvent::RestoreFailed;
            }
        }
        match process::ended_from_outside(status) {
            true => RunEvent::Killed { code },
            false => RunEvent::Exited { code },
        }
    }

    fn saved(&mut self, saved: Result<Option<[u64; 2]>, String>) -> RunEvent {
        let id = self.saver.take().map(|saver| saver.id);
        match (saved, id) {
            (Ok(lengths), Some(id)) => {
                if let Some(lengths) = lengths {
                    self.stored.outputs.insert(id, lengths);
                }
                RunEvent::Saved
            }
            (Err(problem), Some(id)) => {
                self.say(&format!(
                    "checkpoint {id} failed and is not used: {problem}"
                ));
                self.remove(id);
                RunEvent::SaveFailed
            }
            (_, None) => RunEvent::SaveFailed,
        }
    }

    fn heard(&mut self, news: InstanceNews) -> Option<RunEvent> {
        match news {
            InstanceNews::Here { age, env, words } => {
                self.env = env;
                self.say(&format!("instance: {words}, {} old", Hours(age.hours())));
                Some(RunEvent::Instance { age })
            }
            InstanceNews::Notice { deadline, words } => {
                let left = u64::try_from(deadline - clock::unix_millis()).unwrap_or(0);
                let now = self.now();
                self.job.account(now);
                self.say(&format!(
                    "notice: {words}; {} left, {} of work is not saved",
                    Hours(Span(left).hours()),
                    Hours(self.job.unsaved().hours())
                ));
                let deadline = self.now().plus(Span(left));
                Some(RunEvent::Notice { deadline })
            }
            InstanceNews::Risk => {
                self.say("the provider sees a risk for this instance");
                Some(RunEvent::Risk)
            }
            InstanceNews::Save(words) => {
                self.say(&format!("{words}: to be saved"));
                Some(RunEvent::Save)
            }
            InstanceNews::Spared => {
                self.say("the instance stays after all");
                Some(RunEvent::Spared)
            }
            InstanceNews::Gone(words) => {
                self.say(&format!("gone: {words}"));
                Some(RunEvent::Gone)
            }
            InstanceNews::Talk(words) => {
                self.say(&words);
                None
            }
            // The caller stores the id before the request is sent.
            InstanceNews::Asking | InstanceNews::Never(_) => {
                self.write_down();
                None
            }
        }
    }

    async fn act(
        &mut self,
        action: RunAction,
        events: &mut VecDeque<RunEvent>,
    ) -> Result<Option<RunEnd>, CliError> {
        match action {
            RunAction::Start => {
                let tree =
                    self.method
                        .start(&self.stored.command, &self.command_env(), &self.dir)?;
                self.running(tree);
                self.say("started from the beginning");
                events.push_back(RunEvent::Started);
            }
            RunAction::Restore(id) => self.restore(id, events).await?,
            RunAction::Save { id, why } => {
                self.why = reason(why);
                let saver = match &self.process {
                    Some(tree) => {
                        let env = self.command_env();
                        self.method.save(id, why, tree, &env, &self.dir).await
                    }
                    None => Err("there is no process".to_owned()),
                };
                match saver {
                    Ok(saver) => self.saver = Some(saver),
                    Err(problem) => {
                        self.say(&format!("checkpoint {id} cannot be written: {problem}"));
                        self.remove(id);
                        events.push_back(RunEvent::SaveFailed);
                    }
                }
            }
            RunAction::Abandon(id) => {
                self.end_saver().await;
                self.remove(id);
                self.say(&format!("checkpoint {id} was cut off and is not used"));
            }
            RunAction::Discard(id) => self.discards.push(id),
            RunAction::Kill => {
                self.end_process().await;
                self.write_down();
            }
            RunAction::Release => match self.place.release().await {
                Ok(()) => {
                    self.say("all work is saved: told the provider that no more time is needed")
                }
                Err(problem) => self.say(&format!("the provider could not be told: {problem}")),
            },
            RunAction::Await => {
                let record = self.job.record();
                let saved = record.newest().map_or(Span::ZERO, |c| c.work);
                let lost = record.reached().minus(saved);
                self.say(&format!(
                    "lost {} of work; waiting for another instance",
                    Hours(lost.hours())
                ));
            }
            RunAction::Finish(ending) => return Ok(Some(ending)),
        }
        Ok(None)
    }

    async fn restore(&mut self, id: u64, events: &mut VecDeque<RunEvent>) -> Result<(), CliError> {
        let lengths = self.stored.outputs.get(&id).copied();
        let env = self.command_env();
        let command = &self.stored.command;
        let restored = self.method.restore(id, lengths, command, &env, &self.dir);
        match restored.await? {
            Ok(tree) => {
                self.running(tree);
                let work = self.job.record().reached();
                self.say(&format!(
                    "goes on from checkpoint {id}, with {} of work",
                    Hours(work.hours())
                ));
                events.push_back(RunEvent::Started);
            }
            Err(problem) => {
                self.say(&format!(
                    "checkpoint {id} cannot be gone on from: {problem}"
                ));
                events.push_back(RunEvent::RestoreFailed);
            }
        }
        Ok(())
    }

    fn running(&mut self, tree: Tree) {
        self.stored.running = tree.identity();
        self.process = Some(tree);
        self.write_down();
    }

    fn command_env(&self) -> Env {
        let mut env = self.env.clone();
        let dir = self.dir.path().display().to_string();
        env.push(("EBBTIDE_STATE_DIR", dir));
        env
    }

    async fn end_process(&mut self) {
        if let Some(tree) = self.process.take() {
            let spare: Vec<i32> = self.saver.iter().map(Saver::pid).collect();
            tree.kill(&spare).await;
        }
        self.stored.running = None;
    }

    async fn end_saver(&mut self) {
        if let Some(saver) = self.saver.take() {
            saver.abandon().await;
        }
    }

    fn remove(&mut self, id: u64) {
        if let Err(error) = self.dir.remove(id) {
            self.say(&format!("{}: {error}", error.code()));
        }
    }

    /// Stores the state, and reports a failure. After a failure the job continues, but no
    /// checkpoint is removed until the state is stored.
    fn write_down(&mut self) {
        let saved = self.stored.record.saved;
        match self.write() {
            Ok(()) => {
                self.unwritten = false;
                if self.stored.record.saved > saved {
                    self.tell_saved();
                }
                for id in std::mem::take(&mut self.discards) {
                    self.stored.outputs.remove(&id);
                    self.remove(id);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.unwritten, true) {
                    let next = error.next_step().unwrap_or_default();
                    self.say(&format!("{}: {error}; {next}", error.code()));
                }
            }
        }
    }

    fn write(&mut self) -> Result<(), RunFault> {
        let now = self.now();
        self.job.account(now);
        self.stored.record = self.job.record().clone();
        self.stored.server = self.place.created();
        self.dir.write(&self.stored)
    }

    fn tell_saved(&mut self) {
        let record = self.job.record();
        let (Some(newest), Some(cost)) = (record.newest(), record.costs.last()) else {
            return;
        };
        let next = match self.job.due() {
            Some(due) => format!(
                "the next after {} of work",
                Hours(due.minus(newest.work).hours())
            ),
            None => "no other is planned".to_owned(),
        };
        let words = format!(
            "checkpoint {} ({}) with {} of work is complete, it took {}; {next}",
            newest.id,
            self.why,
            Hours(newest.work.hours()),
            Hours(cost.hours()),
        );
        self.say(&words);
    }
}
