//! Detects when the host's clock is set, so that no guest loses part of its grace period.
//!
//! The agent compares the wall clock with a monotonic clock, which cannot be set. It also stores
//! their last difference in a file of the state directory. Thus the next agent detects a clock that
//! was set while no agent ran, unless the host was rebooted in between. After a reboot no guest is
//! left whose grace period could run.

use crate::clock::Clock;
use ebbtide_model::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Minimum difference that counts as a clock step. Smaller differences are NTP slew or the delay
/// between two clock reads.
const STEP_MS: i64 = 1_000;
/// Reading both clocks takes microseconds. If it took longer than this, the process was suspended
/// in between.
const TOGETHER: Duration = Duration::from_millis(50);
/// Maximum number of tries to read both clocks within `TOGETHER`; the last reading is used in any
/// case.
const TRIES: u32 = 20;

/// The kernel's identifier of the current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Watches the difference between the wall clock and the monotonic clock.
#[derive(Debug)]
pub(super) struct ClockWatch {
    clock: Arc<dyn Clock>,
    /// The wall clock minus the monotonic clock at the last read, in milliseconds.
    between_ms: i64,
    file: PathBuf,
}

impl ClockWatch {
    /// Starts to watch. Also returns by how many milliseconds the clock was set since the last
    /// agent of this state directory watched it; the caller calls [`Self::note`] after handling
    /// that.
    pub(super) fn open(clock: Arc<dyn Clock>, state_dir: &Path) -> (Self, Option<i64>) {
        let file = state_dir.join("clock");
        let (_, between_ms) = read(&*clock);
        let before = recall(&file);
        let watch = Self {
            clock,
            between_ms,
            file,
        };
        (watch, before.and_then(|before| step(before, between_ms)))
    }

    /// The time, and by how many milliseconds the clock was set since the last call, if it was; the
    /// caller calls [`Self::note`] after handling that.
    pub(super) fn look(&mut self) -> (Timestamp, Option<i64>) {
        let (now, between_ms) = read(&*self.clock);
        let by_ms = step(self.between_ms, between_ms);
        self.between_ms = between_ms;
        if let Some(by_ms) = by_ms {
            tracing::warn!(
                by_ms,
                "the host's clock was set; grace periods end when they would have ended"
            );
        }
        (now, by_ms)
    }

    /// The caller calls this before it writes the new times to the journal, and [`Self::note`]
    /// afterwards, so that a crash in between takes no time from a guest. An end that is moved back
    /// twice would lose time, so a clock that was set back is noted before. An end that is moved
    /// forward twice, or is not moved back, restarts its grace period at most; see
    /// `Evacuation::restored`.
    pub(super) fn note_before(&self, by_ms: i64) {
        if by_ms < 0 {
            self.note();
        }
    }

    /// Writes the current difference to the file.
    pub(super) fn note(&self) {
        let Some(boot) = boot() else { return };
        let draft = self.file.with_extension("new");
        let written = std::fs::write(&draft, format!("{boot} {}\n", self.between_ms))
            .and_then(|()| std::fs::rename(&draft, &self.file));
        if let Err(error) = written {
            let file = self.file.display();
            tracing::warn!(%file, "a clock step while the agent is down will not be detected: {error}");
        }
    }
}

fn step(before_ms: i64, now_ms: i64) -> Option<i64> {
    let by_ms = now_ms.saturating_sub(before_ms);
    (by_ms.abs() >= STEP_MS).then_some(by_ms)
}

/// The time, and the difference between the clocks.
fn read(clock: &dyn Clock) -> (Timestamp, i64) {
    let mut tries = 0;
    loop {
        let before = clock.steady();
        let now = clock.now();
        let after = clock.steady();
        tries += 1;
        if after.saturating_sub(before) <= TOGETHER || tries == TRIES {
            let steady = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
            return (now, now.as_millis().saturating_sub(steady));
        }
    }
}

fn boot() -> Option<String> {
    let id = std::fs::read_to_string(BOOT_ID).ok()?;
    Some(id.trim().to_owned())
}

/// The difference in the file, if it was written since the host booted.
fn recall(file: &Path) -> Option<i64> {
    let text = std::fs::read_to_string(file).ok()?;
    let (id, between_ms) = text.trim().split_once(' ')?;
    let between_ms = between_ms.parse().ok()?;
    (boot()? == id).then_some(between_ms)
}
