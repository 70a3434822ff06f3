//! Notices when somebody sets the host's clock, so that nobody loses its grace period by that.
//!
//! The wall clock is compared with one that nobody can set. What was between the two last is also in a file of the state directory: a clock that is
//! set while the agent is down is noticed by the next one, unless the host was started anew in between. Then no guest is left whose time could
//! run.

use crate::clock::Clock;
use ebbtide_model::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What is less is how clocks are kept right, and how two clocks are read one after the other.
const STEP_MS: i64 = 1_000;
/// Reading both clocks takes microseconds; if it took longer, this process stood still meanwhile.
const TOGETHER: Duration = Duration::from_millis(50);
/// Two clocks that cannot be read together are read apart in the end.
const TRIES: u32 = 20;

/// Where the kernel says which start of the host this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Both clocks, and what was between them.
#[derive(Debug)]
pub(super) struct ClockWatch {
    clock: Arc<dyn Clock>,
    /// The wall clock minus the steady one, in milliseconds, when they were read last.
    between_ms: i64,
    file: PathBuf,
}

impl ClockWatch {
    /// Begins to watch. Also says by how many milliseconds the clock was set since the agent of this state directory watched last; to be
    /// [noted](Self::note) when that is dealt with.
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

    /// The time, and by how many milliseconds the clock was set since this was asked last, if it was; to be [noted](Self::note) then.
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

    /// To be called before the journal gets its new times, as [`Self::note`] afterwards: a crash between the two must not take time from anybody.
    /// Whose end is moved back a second time would lose its time, so a clock that was set back is noted before. Whose end is moved forward a second time, or
    /// is not moved back, gets its whole grace period anew at most; see `Evacuation::restored`.
    pub(super) fn note_before(&self, by_ms: i64) {
        if by_ms < 0 {
            self.note();
        }
    }

    /// Writes down what is between the clocks.
    pub(super) fn note(&self) {
        let Some(boot) = boot() else { return };
        let draft = self.file.with_extension("new");
        let written = std::fs::write(&draft, format!("{boot} {}\n", self.between_ms))
            .and_then(|()| std::fs::rename(&draft, &self.file));
        if let Err(error) = written {
            let file = self.file.display();
            tracing::warn!(%file, "if the clock is set while the agent is down, nobody will notice: {error}");
        }
    }
}

fn step(before_ms: i64, now_ms: i64) -> Option<i64> {
    let by_ms = now_ms.saturating_sub(before_ms);
    (by_ms.abs() >= STEP_MS).then_some(by_ms)
}

/// The time, and what is between the clocks.
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

/// What was between the clocks, if that was since the host was started.
fn recall(file: &Path) -> Option<i64> {
    let text = std::fs::read_to_string(file).ok()?;
    let (id, between_ms) = text.trim().split_once(' ')?;
    let between_ms = between_ms.parse().ok()?;
    (boot()? == id).then_some(between_ms)
}
