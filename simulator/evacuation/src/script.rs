//! What happens in a world, as a list of steps that is drawn from the seed before anything begins.
//!
//! A step names what happens and carries two numbers that choose among whatever is there at that
//! moment. So any step can be left out and the rest still means something: that is how a failing
//! world is made small.

use crate::random::WorldRng;
use std::fmt;

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident = $weight:literal, $fault:literal;)+) => {
        /// What happens in a step.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Op {
            $($(#[$doc])* $name,)+
        }

        impl Op {
            const ALL: &'static [Self] = &[$(Self::$name),+];
            /// How often each comes, against the others of its kind.
            const WEIGHTS: &'static [u32] = &[$($weight),+];
            /// Whether it is a fault.
            const FAULTS: &'static [bool] = &[$($fault),+];
        }
    };
}

ops! {
    /// A tenant asks for preemptible servers.
    CreateSpot = 110, false;
    /// A tenant asks for a normal server.
    CreateNormal = 150, false;
    /// An owner deletes a server.
    Delete = 90, false;
    /// A victim's owner gives up the rest of the grace period.
    Release = 15, false;
    /// A host is disabled or enabled.
    ToggleHost = 6, false;
    /// A scheduler hands one message to the broker.
    Send = 60, false;
    /// An agent takes one message.
    Deliver = 60, false;
    /// A call of a hypervisor ends.
    Complete = 60, false;
    /// The broker takes one report.
    Confirm = 50, false;
    /// A scheduler reads one report.
    Read = 60, false;
    /// Everything that can move without time passing moves.
    Flow = 120, false;
    /// Time passes.
    Pass = 160, false;
    /// Time passes, and everything moves meanwhile.
    Run = 60, false;
    /// Operators find what is away, full, cut off or stuck, and mend it.
    Mend = 24, false;
    /// A scheduler's process is killed.
    CrashScheduler = 20, true;
    /// A scheduler stands still, or goes on.
    PauseScheduler = 14, true;
    /// A scheduler's clock is set.
    SkewScheduler = 4, true;
    /// An agent is killed; it may stay away for a while.
    CrashAgent = 30, true;
    /// An agent dies in the middle of the next thing that it does.
    TearAgent = 24, true;
    /// An agent's disk is full, or not any more.
    FillAgentDisk = 10, true;
    /// An agent's clock is set.
    SkewAgent = 6, true;
    /// An agent lies in its next heartbeat.
    Lie = 6, true;
    /// A commit fails soon.
    FailCommit = 26, true;
    /// A commit's answer is lost soon.
    LoseCommit = 14, true;
    /// The database's disk is full, or not any more.
    FillDisk = 8, true;
    /// The broker goes away, or comes back.
    ToggleBroker = 12, true;
    /// The network between an agent and the broker is cut or mended, in one direction.
    Partition = 20, true;
    /// A confirmation is lost.
    LoseConfirm = 20, true;
    /// A message comes twice.
    Duplicate = 30, true;
    /// A message is overtaken.
    Reorder = 24, true;
    /// A heartbeat is lost.
    LoseHeartbeat = 8, true;
    /// A call of a hypervisor goes wrong.
    BadCall = 50, true;
    /// A hypervisor stands still, or goes on.
    Stick = 14, true;
    /// A guest ends behind everybody's back.
    LoseGuest = 6, true;
    /// An answer is lost, and the tenant repeats the request.
    LoseAnswer = 14, true;
    /// The caller goes away.
    Cancel = 24, true;
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptStep {
    /// What happens.
    pub op: Op,
    /// Chooses to whom.
    pub a: u32,
    /// Chooses how.
    pub b: u32,
}

/// All steps of a seed: how many of a thousand are faults depends on the seed, from none to a
/// third.
#[must_use]
pub fn script(seed: u64, steps: usize) -> Vec<ScriptStep> {
    let mut chance = WorldRng::new(seed, 1);
    let faults_percent = [0, 4, 10, 20, 33][chance.below(5) as usize];
    let weights = |fault: bool| -> Vec<u32> {
        let both = Op::WEIGHTS.iter().zip(Op::FAULTS);
        both.map(|(weight, is)| if *is == fault { *weight } else { 0 })
            .collect()
    };
    let (mut good, mut bad) = (weights(false), weights(true));
    // In some worlds nothing is repaired until the end, so agents are silent for long.
    if chance.percent(40) {
        for (weight, op) in good.iter_mut().zip(Op::ALL) {
            if *op == Op::Mend {
                *weight = 0;
            }
        }
    }
    // Each world has its own bad days: some kinds of faults do not happen in it, so that others
    // show what they do alone.
    for weight in &mut bad {
        if chance.percent(35) {
            *weight = 0;
        }
    }
    if bad.iter().all(|weight| *weight == 0) {
        bad = weights(true);
    }
    (0..steps)
        .map(|_| {
            let kind = if chance.percent(faults_percent) {
                &bad
            } else {
                &good
            };
            let op = Op::ALL[chance.weighted(kind)];
            ScriptStep {
                op,
                a: chance.any(),
                b: chance.any(),
            }
        })
        .collect()
}

/// Positions of steps in a script, written as `0-3,7,9-12`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepPositions(pub Vec<usize>);

impl fmt::Display for StepPositions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut first = true;
        while let Some(begin) = rest.first().copied() {
            let run = rest
                .iter()
                .enumerate()
                .take_while(|(n, place)| **place == begin + n)
                .count();
            if !first {
                f.write_str(",")?;
            }
            first = false;
            if run == 1 {
                write!(f, "{begin}")?;
            } else {
                write!(f, "{begin}-{}", begin + run - 1)?;
            }
            rest = rest.get(run..).unwrap_or_default();
        }
        Ok(())
    }
}

impl std::str::FromStr for StepPositions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |word: &str| -> Result<usize, String> {
            let n: usize = word
                .trim()
                .parse()
                .map_err(|_| format!("{word:?} is not the number of a step; write 0-3,7,9-12"))?;
            if n >= crate::MAX_STEPS {
                return Err(format!(
                    "step {n} is beyond the last there can be ({})",
                    crate::MAX_STEPS - 1
                ));
            }
            Ok(n)
        };
        let mut places = Vec::new();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            match part.split_once('-') {
                Some((from, to)) => {
                    let (from, to) = (number(from)?, number(to)?);
                    if to < from {
                        return Err(format!("{part:?} runs backwards"));
                    }
                    places.extend(from..=to);
                }
                None => places.push(number(part)?),
            }
            if places.len() > crate::MAX_STEPS {
                return Err("it names more places than there are steps".to_owned());
            }
        }
        places.sort_unstable();
        places.dedup();
        Ok(Self(places))
    }
}
