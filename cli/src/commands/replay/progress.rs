//! How far the replay is: a bar on a terminal, else a line every few seconds.

use crate::{Context, clock};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The bar, or the time of the last line.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    told: Instant,
}

impl Progress {
    pub(super) fn new(context: &Context, total: usize) -> Self {
        let bar = context.output.may_draw().then(|| {
            let bar = ProgressBar::new(total as u64);
            if let Ok(style) = ProgressStyle::with_template(
                "{bar:30} {pos}/{len} events, {per_sec}, {eta} left  {msg}",
            ) {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            total,
            told: clock::instant(),
        }
    }

    /// So many events are done.
    pub(super) fn set(&mut self, context: &mut Context, done: usize, message: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(done as u64);
            if !message.is_empty() {
                bar.set_message(message.to_owned());
            }
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = clock::instant();
            let comma = if message.is_empty() { "" } else { ", " };
            context
                .output
                .say(&format!("{done} of {} events{comma}{message}", self.total));
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
