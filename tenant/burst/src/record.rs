//! The record of events, one line of JSON each, and the account computed from it.
//!
//! The record is append-only. [`BurstRecord::apply`] adds a fact to the account.
//! [`BurstRecord::learn`] compares the account with the present state of Slurm and the region and
//! returns the new facts, so that a restarted controller continues with the same account.

use crate::account::InstanceHistory;
use crate::error::BurstError;
use crate::settings::ElasticSettings;
use crate::slurm::{JobState, SlurmJob};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kind of a job. Long jobs occupy the servers that short jobs wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobClass {
    /// A short job, which should wait little.
    Short,
    /// A long job, which runs on on-demand nodes.
    Long,
}

impl JobClass {
    /// The kind of a job, by its partition or its time limit.
    #[must_use]
    pub fn of(job: &SlurmJob, settings: &ElasticSettings) -> Self {
        let by_partition = job
            .partition
            .split(',')
            .any(|p| settings.long_partitions.iter().any(|long| long == p));
        let hours = job.limit_minutes.map(|minutes| minutes as f64 / 60.0);
        let by_limit = match (settings.long_hours, hours) {
            (Some(long), Some(hours)) => hours >= long,
            // Without a time limit the job may run for ever.
            (Some(_), None) => true,
            (None, _) => false,
        };
        if by_partition || by_limit {
            Self::Long
        } else {
            Self::Short
        }
    }

    /// Its name in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
        }
    }
}

/// How an instance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifeEnd {
    /// The provider took it.
    Interrupted,
    /// The controller released it.
    Released,
    /// Its node never came up, or the region had no capacity.
    NeverUp,
}

/// A line of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordEntry {
    /// When the controller noticed it, milliseconds since 1970.
    pub at: i64,
    /// What happened.
    #[serde(flatten)]
    pub event: BurstEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum BurstEvent {
    /// The controller started for the first time: the on-demand nodes and their processors.
    Began {
        /// The on-demand nodes.
        stays: BTreeMap<String, u32>,
        /// What an hour of an instance costs, millionths.
        preemptible: u64,
        /// What an hour of an on-demand server costs, millionths.
        on_demand: u64,
    },
    /// A job was seen for the first time.
    Job {
        /// Slurm's number.
        job: u32,
        name: String,
        /// Long or short.
        kind: JobClass,
        /// Processors over all nodes.
        cpus: u32,
        nodes: u32,
        /// When it was submitted.
        submitted: i64,
    },
    /// A job was started.
    Start {
        /// Slurm's number.
        job: u32,
        start: i64,
        on: Vec<String>,
    },
    /// A job was stopped before its end, and is pending again.
    Cut {
        /// Slurm's number.
        job: u32,
    },
    /// A job is over.
    End {
        /// Slurm's number.
        job: u32,
        end: i64,
        /// Whether it ended successfully.
        well: bool,
        /// Slurm's word for its final state.
        state: String,
    },
    /// An instance was launched.
    Launched {
        /// Its id.
        instance: String,
        node: String,
        /// Start of the time that is paid for.
        launch: i64,
        /// What an hour costs, millionths.
        hourly: u64,
    },
    /// An instance has notice to leave.
    Notice {
        /// Its id.
        instance: String,
        /// Until when.
        deadline: i64,
    },
    /// A new hour of an instance costs something else than the one before.
    Price {
        /// Its id.
        instance: String,
        /// When that hour began.
        since: i64,
        /// What it costs, millionths.
        hourly: u64,
    },
    /// An instance hibernates or is stopped: it is not paid for.
    Paused {
        /// Its id.
        instance: String,
    },
    /// It runs again.
    Resumed {
        /// Its id.
        instance: String,
        /// Since when it is paid for.
        since: i64,
    },
    /// An instance is gone.
    Gone {
        /// Its id.
        instance: String,
        end: i64,
        how: LifeEnd,
    },
    /// An error, with its code.
    Trouble {
        code: String,
        /// The error's text.
        words: String,
    },
}

/// One run of a job, from its start to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRun {
    /// Milliseconds.
    pub start: i64,
    /// Milliseconds; `None` while the job runs.
    pub end: Option<i64>,
    pub on: Vec<String>,
}

/// Everything known of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLife {
    pub name: String,
    /// Long or short.
    pub kind: JobClass,
    /// Processors over all nodes.
    pub cpus: u32,
    pub nodes: u32,
    /// When it was submitted, milliseconds.
    pub submitted: i64,
    /// All its runs; all but the last were cut.
    pub runs: Vec<JobRun>,
    /// Whether it ended successfully; `None` if it has not ended.
    pub over: Option<bool>,
}

impl JobLife {
    /// How long it waited before it was started for the first time, milliseconds: the queueing
    /// delay.
    #[must_use]
    pub fn delay(&self) -> Option<i64> {
        self.runs
            .first()
            .map(|run| (run.start - self.submitted).max(0))
    }

    /// Total waiting time, also after each cut, milliseconds.
    #[must_use]
    pub fn waited(&self) -> Option<i64> {
        let mut since = self.submitted;
        let mut sum = 0;
        for run in &self.runs {
            sum += (run.start - since).max(0);
            since = run.end.unwrap_or(run.start);
        }
        (!self.runs.is_empty()).then_some(sum)
    }

    /// Duration of the last run, milliseconds, if the job has ended.
    #[must_use]
    pub fn length(&self) -> Option<i64> {
        self.over?;
        let run = self.runs.last()?;
        run.end.map(|end| (end - run.start).max(0))
    }

    /// Number of cuts.
    #[must_use]
    pub fn cuts(&self) -> usize {
        let ended_runs = self.runs.iter().filter(|run| run.end.is_some()).count();
        ended_runs - usize::from(self.over.is_some() && ended_runs > 0)
    }

    /// Total duration of the cut runs, milliseconds: the loss of a job that saves nothing.
    #[must_use]
    pub fn in_vain(&self) -> i64 {
        let cut = self.runs.iter().take(self.cuts());
        cut.map(|run| run.end.unwrap_or(run.start) - run.start)
            .sum()
    }
}

/// The account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BurstRecord {
    /// When the first fact was noticed, milliseconds.
    pub from: Option<i64>,
    /// Time of the first start of a controller.
    pub began: Option<i64>,
    /// When the last fact was noticed.
    pub until: i64,
    /// The on-demand nodes, with their processors.
    pub stays: BTreeMap<String, u32>,
    /// What an hour of an on-demand server costs, millionths.
    pub on_demand: u64,
    /// By Slurm's number.
    pub jobs: BTreeMap<u32, JobLife>,
    /// By id.
    pub lives: BTreeMap<String, InstanceHistory>,
    /// Error codes and their counts.
    pub troubles: BTreeMap<String, u64>,
}

impl BurstRecord {
    /// Reads a record. Leaves out an incomplete last line, which a crash or a full disk may cause.
    ///
    /// # Errors
    /// [`BurstError::Record`] for any other invalid line.
    pub fn parse(text: &str) -> Result<Self, BurstError> {
        let mut record = Self::default();
        let whole = text.ends_with('\n');
        let count = text.lines().count();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str::<RecordEntry>(line) {
                Ok(fact) => record.apply(&fact),
                Err(_) if at + 1 == count && !whole => break,
                Err(error) => {
                    return Err(BurstError::Record {
                        line: at + 1,
                        problem: error.to_string(),
                    });
                }
            }
        }
        Ok(record)
    }

    /// Applies a fact to the record. An impossible fact, such as the end of an unknown job, changes
    /// nothing.
    pub fn apply(&mut self, fact: &RecordEntry) {
        self.from = Some(self.from.map_or(fact.at, |from| from.min(fact.at)));
        self.until = self.until.max(fact.at);
        match &fact.event {
            BurstEvent::Began {
                stays, on_demand, ..
            } => {
                self.began.get_or_insert(fact.at);
                self.stays.clone_from(stays);
                self.on_demand = *on_demand;
            }
            BurstEvent::Job {
                job,
                name,
                kind,
                cpus,
                nodes,
                submitted,
            } => {
                let life = JobLife {
                    name: name.clone(),
                    kind: *kind,
                    cpus: *cpus,
                    nodes: *nodes,
                    submitted: *submitted,
                    runs: Vec::new(),
                    over: None,
                };
                self.jobs.entry(*job).or_insert(life);
            }
            BurstEvent::Start { job, start, on } => {
                if let Some(life) = self.open(*job) {
                    close(life, *start);
                    life.runs.push(JobRun {
                        start: *start,
                        end: None,
                        on: on.clone(),
                    });
                }
            }
            BurstEvent::Cut { job } => {
                if let Some(life) = self.open(*job) {
                    close(life, fact.at);
                }
            }
            BurstEvent::End { job, end, well, .. } => {
                if let Some(life) = self.open(*job) {
                    close(life, *end);
                    life.over = Some(*well);
                }
            }
            BurstEvent::Launched {
                instance,
                node,
                launch,
                hourly,
            } => {
                let life = InstanceHistory::new(node.clone(), *launch, *hourly);
                self.lives.entry(instance.clone()).or_insert(life);
            }
            BurstEvent::Notice { instance, .. } => {
                if let Some(life) = self.lives.get_mut(instance) {
                    life.noticed = true;
                }
            }
            BurstEvent::Price {
                instance,
                since,
                hourly,
            } => {
                if let Some(life) = self.lives.get_mut(instance) {
                    life.prices.push((*since, *hourly));
                    life.priced = life.priced.max(*since);
                }
            }
            BurstEvent::Paused { instance } => {
                let life = self.lives.get_mut(instance);
                if let Some(life) = life.filter(|life| !life.is_paused()) {
                    life.pauses.push((fact.at.max(life.launch), None));
                }
            }
            BurstEvent::Resumed { instance, since } => {
                let life = self.lives.get_mut(instance);
                if let Some((from, to)) = life.and_then(|life| life.pauses.last_mut()) {
                    to.get_or_insert((*since).max(*from));
                }
            }
            BurstEvent::Gone { instance, end, how } => {
                if let Some(life) = self.lives.get_mut(instance) {
                    life.end.get_or_insert((*end, *how));
                }
            }
            BurstEvent::Trouble { code, .. } => {
                *self.troubles.entry(code.clone()).or_default() += 1;
            }
        }
    }

    fn open(&mut self, job: u32) -> Option<&mut JobLife> {
        self.jobs.get_mut(&job).filter(|life| life.over.is_none())
    }

    /// The new facts about these jobs, already applied to the record.
    pub fn learn(
        &mut self,
        now: i64,
        jobs: &[SlurmJob],
        settings: &ElasticSettings,
    ) -> Vec<RecordEntry> {
        let mut facts = Vec::new();
        for job in jobs.iter().filter(|job| !job.waits_for_many) {
            self.learn_job(now, job, settings, &mut facts);
        }
        facts
    }

    pub(crate) fn record_event(
        &mut self,
        at: i64,
        event: BurstEvent,
        facts: &mut Vec<RecordEntry>,
    ) {
        let fact = RecordEntry { at, event };
        self.apply(&fact);
        facts.push(fact);
    }

    fn learn_job(
        &mut self,
        now: i64,
        job: &SlurmJob,
        settings: &ElasticSettings,
        facts: &mut Vec<RecordEntry>,
    ) {
        let id = job.id;
        if !self.jobs.contains_key(&id) {
            // Slurm lists jobs for a while after their end. Jobs that ended before the record began
            // do not belong to it.
            if job.is_over() && self.began.is_some_and(|began| job.end_ms < began) {
                return;
            }
            let event = BurstEvent::Job {
                job: id,
                name: job.name.clone(),
                kind: JobClass::of(job, settings),
                cpus: job.cpus.max(1),
                nodes: job.node_count.max(1),
                submitted: job.submitted_ms,
            };
            self.record_event(now, event, facts);
        }
        let Some(life) = self.jobs.get(&id).filter(|life| life.over.is_none()) else {
            return;
        };
        let (runs, last) = (life.runs.len(), life.runs.last().cloned());
        let running = last.as_ref().is_some_and(|run| run.end.is_none());
        // A job that was cancelled while pending has no start and no run.
        let has_run = job.start_ms > 0 && !job.nodes.is_empty();
        // A job whose node still boots has not started yet.
        let uses = (job.runs() && job.state != JobState::Configuring)
            || job.state == JobState::Completing
            || job.is_over();
        let newer = last.as_ref().is_none_or(|run| job.start_ms > run.start);
        if uses && has_run && newer && runs <= job.restarts as usize + 1 {
            let event = BurstEvent::Start {
                job: id,
                start: job.start_ms,
                on: job.nodes.clone(),
            };
            self.record_event(now, event, facts);
        }
        if job.state == JobState::Pending && running {
            self.record_event(now, BurstEvent::Cut { job: id }, facts);
        }
        if job.is_over() {
            let event = BurstEvent::End {
                job: id,
                end: if job.end_ms > 0 { job.end_ms } else { now },
                well: job.state == JobState::Completed,
                state: job.state_word.clone(),
            };
            self.record_event(now, event, facts);
        }
    }
}

fn close(life: &mut JobLife, at: i64) {
    if let Some(run) = life.runs.last_mut()
        && run.end.is_none()
    {
        run.end = Some(at.max(run.start));
    }
}
