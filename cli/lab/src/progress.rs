//! How far a long command is: a bar on a terminal, else a line every few seconds.

use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// Time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The bar, or the time of the last line.
pub(crate) struct ReplayProgress {
    bar: Option<ProgressBar>,
    total: usize,
    things: &'static str,
    told: Instant,
}

impl ReplayProgress {
    pub(crate) fn new(context: &Context, total: usize) -> Self {
        Self::of(context, total, "events")
    }

    /// Of other things than events.
    pub(crate) fn of(context: &Context, total: usize, things: &'static str) -> Self {
        let bar = context.output.may_draw().then(|| {
            let bar = ProgressBar::new(total as u64);
            let template =
                format!("{{bar:30}} {{pos}}/{{len}} {things}, {{per_sec}}, {{eta}} left  {{msg}}");
            if let Ok(style) = ProgressStyle::with_template(&template) {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            total,
            things,
            told: clock::instant(),
        }
    }

    /// So many events are done.
    pub(crate) fn set(&mut self, context: &mut Context, done: usize, message: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(done as u64);
            if !message.is_empty() {
                bar.set_message(message.to_owned());
            }
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = clock::instant();
            let comma = if message.is_empty() { "" } else { ", " };
            context.output.say(&format!(
                "{done} of {} {}{comma}{message}",
                self.total, self.things
            ));
        }
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
