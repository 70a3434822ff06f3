//! Traces of jobs in the format of Hawk and Eagle: a job a line.

use crate::error::ElasticError;

/// The most jobs, and the most tasks, of a trace. A task takes eight bytes here and some hundred in
/// a simulation.
pub const MOST_TASKS: usize = 50_000_000;
/// The most work of a trace, microseconds: thirty thousand years on one server. Sums of times stay
/// far below what fits into 64 bits.
const MOST_WORK_US: u64 = 1_000_000_000_000_000_000;
/// The longest task and the latest arrival, seconds: ten years.
const LONGEST: f64 = 10.0 * 366.0 * 86_400.0;

/// A job: some tasks that have nothing to do with one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceJob {
    /// When it arrives, microseconds.
    pub arrival_us: u64,
    /// How long a task of it takes by the scheduler's estimate, microseconds. The trace has the
    /// mean.
    pub estimate_us: u64,
    /// How long its tasks really take, microseconds.
    pub tasks_us: Vec<u64>,
}

/// Jobs in the order in which they arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    jobs: Vec<TraceJob>,
    tasks: usize,
    cut: bool,
}

impl Trace {
    /// A trace of these jobs.
    ///
    /// # Errors
    /// [`ElasticError::Empty`], [`ElasticError::Unsorted`] and, for a job without tasks or with a
    /// task longer than ten years, [`ElasticError::Line`], where job n is line n;
    /// [`ElasticError::TooMany`].
    pub fn new(jobs: Vec<TraceJob>) -> Result<Self, ElasticError> {
        let mut building = TraceBuilder::default();
        for (at, job) in jobs.into_iter().enumerate() {
            let line = at as u64 + 1;
            let longest = (LONGEST * 1e6) as u64;
            let all = job
                .tasks_us
                .iter()
                .chain([&job.arrival_us, &job.estimate_us]);
            if job.tasks_us.is_empty() || all.into_iter().any(|us| *us > longest) {
                let problem = "a job has one task at least, and no time above ten years".to_owned();
                return Err(ElasticError::Line { line, problem });
            }
            building.add(line, job)?;
        }
        building.done(false)
    }

    /// Reads text with a job a line: arrival in seconds, number of tasks, mean duration of a task
    /// in seconds, and the duration of each task in seconds, with blanks between. Lines are in the
    /// order of arrival. Empty lines are skipped.
    ///
    /// # Errors
    /// [`ElasticError::Line`] for what cannot be read, a line that was cut off among it,
    /// [`ElasticError::Unsorted`], [`ElasticError::Empty`], [`ElasticError::TooMany`].
    pub fn read(text: &[u8]) -> Result<Self, ElasticError> {
        let mut building = TraceBuilder::default();
        for (at, bytes) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = at as u64 + 1;
            let wrong = |problem: String| ElasticError::Line { line, problem };
            let row = std::str::from_utf8(bytes)
                .map_err(|_| wrong("this is no text; is it another format?".to_owned()))?;
            let words = row.split_ascii_whitespace();
            if let Some(job) = job(words).map_err(wrong)? {
                building.add(line, job)?;
            }
        }
        let cut = text.last().is_some_and(|byte| *byte != b'\n');
        building.done(cut)
    }

    /// The jobs, first come first.
    #[must_use]
    pub fn jobs(&self) -> &[TraceJob] {
        &self.jobs
    }

    /// Tasks of all jobs.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// True if the last line has no end. If the file was cut off there, its last duration is wrong;
    /// nothing else can tell.
    #[must_use]
    pub fn ends_without_newline(&self) -> bool {
        self.cut
    }

    /// From the first arrival to the last, microseconds.
    #[must_use]
    pub fn span_us(&self) -> u64 {
        match (self.jobs.first(), self.jobs.last()) {
            (Some(first), Some(last)) => last.arrival_us - first.arrival_us,
            _ => 0,
        }
    }
}

#[derive(Default)]
struct TraceBuilder {
    jobs: Vec<TraceJob>,
    tasks: usize,
    work_us: u64,
}

impl TraceBuilder {
    fn add(&mut self, line: u64, job: TraceJob) -> Result<(), ElasticError> {
        if let Some(before) = self.jobs.last()
            && job.arrival_us < before.arrival_us
        {
            return Err(ElasticError::Unsorted {
                line,
                at: seconds(job.arrival_us),
                before: seconds(before.arrival_us),
            });
        }
        let each = job.tasks_us.iter().map(|us| job.estimate_us.max(*us));
        self.work_us = each.fold(self.work_us, u64::saturating_add);
        if self.work_us > MOST_WORK_US {
            let problem = "up to here there is work for 30,000 years; are these times in seconds?";
            let problem = problem.to_owned();
            return Err(ElasticError::Line { line, problem });
        }
        self.tasks += job.tasks_us.len();
        if self.tasks > MOST_TASKS {
            return Err(ElasticError::TooMany {
                what: "tasks",
                most: MOST_TASKS,
            });
        }
        self.jobs.push(job);
        Ok(())
    }

    fn done(self, cut: bool) -> Result<Trace, ElasticError> {
        if self.jobs.is_empty() {
            return Err(ElasticError::Empty);
        }
        Ok(Trace {
            jobs: self.jobs,
            tasks: self.tasks,
            cut,
        })
    }
}

/// A job of a line's words; none of an empty line.
fn job<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Option<TraceJob>, String> {
    let Some(arrival) = words.next() else {
        return Ok(None);
    };
    let arrival_us = micros("the arrival", arrival)?;
    let cut = |what: &str| {
        format!(
            "{what} is missing: arrival, number of tasks, mean and each duration are wanted; was the file cut off?"
        )
    };
    let number = words.next().ok_or_else(|| cut("the number of tasks"))?;
    let count: usize = number
        .parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| {
            format!(
                "the number of tasks is {:?}; it has to be 1 or more",
                short(number)
            )
        })?;
    let mean = words.next().ok_or_else(|| cut("the mean duration"))?;
    let estimate_us = micros("the mean duration", mean)?;
    let mut tasks_us = Vec::new();
    for word in words {
        if tasks_us.len() == count {
            return Err(format!("there are more durations than the {count} tasks"));
        }
        tasks_us.push(micros("a duration", word)?);
    }
    if tasks_us.len() < count {
        return Err(format!(
            "there are {} durations for {count} tasks; was the file cut off?",
            tasks_us.len()
        ));
    }
    Ok(Some(TraceJob {
        arrival_us,
        estimate_us,
        tasks_us,
    }))
}

fn micros(what: &str, text: &str) -> Result<u64, String> {
    let seconds: Option<f64> = text.parse().ok();
    match seconds {
        // Rounded to the microsecond: what is below is below a network's jitter.
        Some(seconds) if (0.0..=LONGEST).contains(&seconds) => Ok((seconds * 1e6).round() as u64),
        _ => Err(format!(
            "{what} is {:?}; it has to be seconds, 0 to ten years",
            short(text)
        )),
    }
}

/// The beginning of a text, for messages.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
