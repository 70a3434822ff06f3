//! `ebbtide-agent simulate`: looks at a simulated hypervisor, and makes it or its guests misbehave.

use crate::driver::simulated::{
    FaultyAction, GuestHabit, OnNotice, SimulatedState, SimulatedStore,
};
use crate::error::AgentError;
use clap::{Args, Subcommand};
use ebbtide_model::ServerId;
use ebbtide_model::message::HostedState;
use std::fmt::Write;
use std::path::PathBuf;

/// Which hypervisor, and what to do to it.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// The state directory of the agent whose hypervisor is meant.
    #[arg(long, value_name = "DIR", env = "EBBTIDE_AGENT__STATE_DIR")]
    pub state_dir: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub command: SimulateCommand,
}

/// What can be done to a simulated hypervisor.
#[derive(Debug, Subcommand)]
pub enum SimulateCommand {
    /// Show its servers and what misbehaviour is in force.
    Show {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// A server vanishes, as if the hypervisor had crashed it.
    Lose {
        /// Which one.
        server_id: ServerId,
    },
    /// The next calls of a kind fail.
    Fail {
        /// Which kind.
        #[arg(long)]
        action: FaultyAction,
        /// How many of them.
        #[arg(long, default_value_t = 1)]
        times: u32,
    },
    /// The next calls of a kind never return.
    Hang {
        /// Which kind.
        #[arg(long)]
        action: FaultyAction,
        /// How many of them.
        #[arg(long, default_value_t = 1)]
        times: u32,
    },
    /// All calls of a kind take longer, until it is cleared.
    Slow {
        /// Which kind.
        #[arg(long)]
        action: FaultyAction,
        /// How many seconds longer; 0 ends it.
        #[arg(long, value_parser = seconds)]
        seconds: f64,
    },
    /// What guests do when they get their notice, until it is cleared.
    Guest {
        /// What.
        #[arg(long)]
        on_notice: OnNotice,
        /// How long after the notice, in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
        after: f64,
        /// Only this one; all of them otherwise.
        #[arg(long, value_name = "SERVER_ID")]
        server: Option<ServerId>,
    },
    /// The guest says now that it needs no more time. It must have its notice.
    Release {
        /// Which one.
        server_id: ServerId,
    },
    /// The guest powers itself off now.
    PowerOff {
        /// Which one.
        server_id: ServerId,
    },
    /// End all misbehaviour.
    Clear,
}

/// A day is longer than any simulation waits.
const MAX_SECONDS: f64 = 86_400.0;

fn seconds(text: &str) -> Result<f64, String> {
    let allowed = || format!("use a number of seconds, 0 to {MAX_SECONDS}");
    let seconds: f64 = text.parse().map_err(|_| allowed())?;
    if (0.0..=MAX_SECONDS).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(allowed())
    }
}

impl SimulateArgs {
    /// Does it, and says what was done.
    ///
    /// # Errors
    /// [`AgentError::Io`], [`AgentError::Driver`] if there is no such server,
    /// [`AgentError::Config`] if it cannot be done.
    pub fn run(&self) -> Result<String, AgentError> {
        let store = SimulatedStore::open(&self.state_dir)?;
        let failed = |source| AgentError::Io {
            what: "change",
            path: store.path(),
            source,
        };
        store.change(|state| self.apply(state)).map_err(failed)?
    }

    fn apply(&self, state: &mut SimulatedState) -> Result<String, AgentError> {
        let said = match &self.command {
            SimulateCommand::Show { json: true } => return to_json(state),
            SimulateCommand::Show { json: false } => return Ok(table(state)),
            SimulateCommand::Lose { server_id } => {
                state.remove(*server_id)?;
                format!("Server {server_id} is lost.")
            }
            SimulateCommand::Fail { action, times } => {
                count(&mut state.faults.fail, *action, *times);
                format!("The next {times} calls of {action} fail.")
            }
            SimulateCommand::Hang { action, times } => {
                count(&mut state.faults.hang, *action, *times);
                format!("The next {times} calls of {action} hang.")
            }
            SimulateCommand::Slow { action, seconds } => {
                if *seconds > 0.0 {
                    state.faults.slow.insert(*action, *seconds);
                } else {
                    state.faults.slow.remove(action);
                }
                format!("Calls of {action} take {seconds} s longer.")
            }
            SimulateCommand::Guest {
                on_notice,
                after,
                server,
            } => {
                let habit = GuestHabit {
                    on_notice: *on_notice,
                    after_seconds: *after,
                };
                match server {
                    None => {
                        state.faults.guests = habit;
                        "All guests behave so from now on.".to_owned()
                    }
                    Some(server_id) => {
                        state.guest(*server_id)?;
                        state.faults.guest.insert(*server_id, habit);
                        format!("The guest of server {server_id} behaves so from now on.")
                    }
                }
            }
            SimulateCommand::Release { server_id } => {
                let guest = state.guest(*server_id)?;
                let notice = guest.notice.as_mut().ok_or_else(|| {
                    let problem = format!("server {server_id} has no notice that it could answer");
                    AgentError::config("simulate release", problem)
                })?;
                notice.released = true;
                format!("The guest of server {server_id} needs no more time.")
            }
            SimulateCommand::PowerOff { server_id } => {
                state.guest(*server_id)?.state = HostedState::Stopped;
                format!("The guest of server {server_id} has powered itself off.")
            }
            SimulateCommand::Clear => {
                state.faults = Default::default();
                "All misbehaviour has ended.".to_owned()
            }
        };
        Ok(said + "\n")
    }
}

fn count(
    counts: &mut std::collections::BTreeMap<FaultyAction, u32>,
    what: FaultyAction,
    times: u32,
) {
    if times > 0 {
        counts.insert(what, times);
    } else {
        counts.remove(&what);
    }
}

fn to_json(state: &SimulatedState) -> Result<String, AgentError> {
    let json = serde_json::to_string_pretty(state);
    json.map(|text| text + "\n")
        .map_err(|error| AgentError::config("simulate show", error.to_string()))
}

fn table(state: &SimulatedState) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:<36}  {:<10}  {:<24}  {:<6}  TAKES",
        "SERVER", "STATE", "NAME", "NOTICE"
    );
    for (server_id, guest) in &state.servers {
        let doing = match guest.state {
            HostedState::Running => "running",
            HostedState::Stopped => "stopped",
            HostedState::Hibernated => "hibernated",
        };
        let notice = match &guest.notice {
            None => "no",
            Some(notice) if notice.released => "ready",
            Some(_) => "yes",
        };
        let _ = writeln!(
            text,
            "{server_id:<36}  {doing:<10}  {:<24}  {notice:<6}  {}",
            guest.name, guest.resources
        );
    }
    let faults = &state.faults;
    for (action, times) in &faults.fail {
        let _ = writeln!(text, "the next {times} calls of {action} fail");
    }
    for (action, times) in &faults.hang {
        let _ = writeln!(text, "the next {times} calls of {action} hang");
    }
    for (action, seconds) in &faults.slow {
        let _ = writeln!(text, "calls of {action} take {seconds} s longer");
    }
    let habits = faults
        .guest
        .iter()
        .map(|(id, habit)| (id.to_string(), habit));
    for (who, habit) in std::iter::once(("all guests".to_owned(), &faults.guests)).chain(habits) {
        let what = match habit.on_notice {
            OnNotice::Ignore => continue,
            OnNotice::Release => "release",
            OnNotice::PowerOff => "power off",
        };
        let _ = writeln!(
            text,
            "on notice, after {} s: {what} ({who})",
            habit.after_seconds
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser;
    use uuid::Uuid;

    fn simulate(dir: &std::path::Path, words: &[&str]) -> Result<String, AgentError> {
        let dir = dir.to_str().unwrap();
        let head = ["ebbtide-agent", "simulate", "--state-dir", dir];
        match Cli::parse_from(head.iter().chain(words)).command {
            Some(Command::Simulate(args)) => args.run(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn misbehaviour_is_put_in_shown_and_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let good = |words: &[&str]| simulate(dir.path(), words).unwrap();
        good(&["fail", "--action", "hibernate", "--times", "2"]);
        good(&["slow", "--action", "terminate", "--seconds", "5"]);
        good(&["hang", "--action", "list"]);
        good(&["guest", "--on-notice", "power-off", "--after", "1.5"]);
        let shown = good(&["show"]);
        for line in [
            "the next 2 calls of hibernate fail",
            "the next 1 calls of list hang",
            "calls of terminate take 5 s longer",
            "on notice, after 1.5 s: power off (all guests)",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        let json = good(&["show", "--json"]);
        let state: SimulatedState = serde_json::from_str(&json).unwrap();
        assert_eq!(state.faults.fail[&FaultyAction::Hibernate], 2);
        good(&["clear"]);
        assert_eq!(good(&["show"]).lines().count(), 1);
    }

    #[test]
    fn what_cannot_be_done_to_a_server_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let id = Uuid::from_u128(5).to_string();
        for words in [&["lose", &id][..], &["release", &id], &["power-off", &id]] {
            let error = simulate(dir.path(), words).unwrap_err();
            assert_eq!(error.code(), "EB-DRIVER-001", "{words:?}");
        }
        let error = simulate(std::path::Path::new("/nowhere"), &["show"]).unwrap_err();
        assert!(error.to_string().contains("/nowhere"), "{error}");
    }

    #[test]
    fn absurd_times_are_refused() {
        for bad in ["-1", "NaN", "inf", "1e99", "soon"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
