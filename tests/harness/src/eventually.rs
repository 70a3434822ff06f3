//! Waiting for a state by polling, where no event announces it.

use ebbtide_runtime::clock::Deadline;
use std::time::Duration;

/// How long to rest between two looks. Short, so that a test loses little; not shorter, so that a
/// look that starts a client program does not keep a core busy.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again until `look` says yes, and returns what it found.
///
/// This is the one place where polling with a short sleep is right: the state belongs to *another
/// process* (a row in a database, a queue in a broker, a port that opens), which has no way to call
/// us when it changes. Where there is an event (a line in a log, an exit, a message), wait for the
/// event instead ([`crate::Process::wait_for_line`], [`crate::Process::wait_exit`]).
///
/// `look` returns `Ok(value)` when the state is reached and `Err(what it saw instead)` when not.
///
/// # Panics
///
/// When `deadline` has passed, with the last thing seen. It is for tests, and a test that waits in
/// vain has failed.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn count() -> u32 { 3 }
/// # async fn example() {
/// ebbtide_harness::eventually(Duration::from_secs(30), async || {
///     let seen = count().await;
///     if seen == 3 { Ok(()) } else { Err(format!("{seen} of 3 agents are up")) }
/// })
/// .await;
/// # }
/// ```
#[track_caller]
pub fn eventually<T, S, F>(deadline: Duration, mut look: F) -> impl Future<Output = T>
where
    S: std::fmt::Display,
    F: AsyncFnMut() -> Result<T, S>,
{
    // Not an `async fn`: those lose the caller's place, and the place is what a failed test needs.
    let place = std::panic::Location::caller();
    async move {
        let mut pace = Pace::until(deadline);
        loop {
            match look().await {
                Ok(value) => return value,
                Err(seen) => {
                    if !pace.rest().await {
                        panic!("{place}: not reached within {deadline:?}; last seen: {seen}");
                    }
                }
            }
        }
    }
}

/// The pause between two looks, until a deadline.
pub(crate) struct Pace {
    deadline: Deadline,
    last_chance: bool,
}

impl Pace {
    pub(crate) fn until(deadline: Duration) -> Self {
        Self {
            deadline: Deadline::after(deadline),
            last_chance: false,
        }
    }

    /// Rests before the next look; false when there is none. There is always one look *after* the
    /// deadline: a look that took all the time does not make the wait fail for a state that was
    /// reached meanwhile.
    pub(crate) async fn rest(&mut self) -> bool {
        if self.last_chance {
            return false;
        }
        self.last_chance = self.deadline.remaining() <= PAUSE;
        tokio::time::sleep(PAUSE.min(self.deadline.remaining())).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_returns_what_the_first_successful_look_found() {
        let mut looks = 0;
        let found = eventually(Duration::from_secs(30), async || {
            looks += 1;
            if looks == 3 { Ok(looks) } else { Err(looks) }
        })
        .await;
        assert_eq!(found, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "last seen: 1 of 2")]
    async fn it_panics_with_the_last_state_when_the_deadline_passes() {
        eventually(Duration::from_millis(50), async || Err::<(), _>("1 of 2")).await;
    }
}
