//! Going on when the region goes away for a while, as it does when a scheduler restarts.

use crate::Context;
use crate::errors::CliError;
use std::time::Duration;

/// The first pause: a scheduler that restarts is back within a second or two.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause between two tries.
const LONGEST: Duration = Duration::from_secs(15);

/// Pauses between tries, each twice as long as the one before.
#[derive(Debug)]
pub struct PollBackoff {
    next: Duration,
    is_away: bool,
}

impl Default for PollBackoff {
    fn default() -> Self {
        Self {
            next: FIRST,
            is_away: false,
        }
    }
}

impl PollBackoff {
    /// Says what happened and when the next try is, and waits until then.
    pub async fn pause(&mut self, context: &mut Context, error: &CliError) {
        context.output.say(&format!(
            "{}: {error}; trying again in {} s",
            error.code(),
            self.next.as_secs_f64()
        ));
        self.is_away = true;
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST);
    }

    /// The region has answered: says so if it was away, and begins with short pauses again. True if
    /// it was away.
    pub fn answered(&mut self, context: &mut Context, what: &str) -> bool {
        let was_away = std::mem::take(&mut self.is_away);
        if was_away {
            context
                .output
                .say(&format!("the region answers again{what}"));
        }
        self.next = FIRST;
        was_away
    }
}
