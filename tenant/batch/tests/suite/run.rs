//! A controller with its world and its book.

use crate::sim::{Away, SETTINGS, Sim};
use ebbtide_batch::{BatchController, BatchSettings, Book, BookEntry, WorkId};
use serde_json::Value;
use std::collections::BTreeMap;

/// A controller with its world and its book on disk.
pub(crate) struct Run {
    pub(crate) sim: Sim,
    pub(crate) controller: BatchController,
    pub(crate) book: Vec<BookEntry>,
    pub(crate) problems: Vec<String>,
    settings: BatchSettings,
    trail: Vec<String>,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self::with(SETTINGS)
    }

    /// With these settings.
    pub(crate) fn with(settings: &str) -> Self {
        let settings = BatchSettings::parse(settings).unwrap();
        Self {
            sim: Sim::new(),
            controller: BatchController::new(&settings, Book::default()).unwrap(),
            settings,
            book: Vec::new(),
            problems: Vec::new(),
            trail: Vec::new(),
        }
    }

    pub(crate) fn submit(&mut self, document: Value) -> WorkId {
        let now = self.sim.now;
        let checked = self.controller.check(now, document, &BTreeMap::new(), &[]);
        let entry = self.controller.accept(checked.unwrap()).unwrap();
        self.book.push(entry.clone());
        entry.work
    }

    /// One look, and what it does; without `acts` all actions are lost on their way.
    pub(crate) fn step(&mut self, acts: bool) {
        let away = self.sim.away;
        self.step_until(acts, away);
    }

    /// One look, after which something does not answer any more: what the look decided meets that.
    pub(crate) fn step_into(&mut self, away: Away) {
        self.step_until(true, Some(away));
    }

    fn step_until(&mut self, acts: bool, away: Option<Away>) {
        self.sim.tick();
        if self.sim.away.is_some() {
            self.trail.push(format!("{} no look", self.sim.now));
            return;
        }
        let made = self.sim.look(&mut self.controller);
        self.book.extend(made.facts.iter().cloned());
        self.problems
            .extend(made.problems.iter().map(|one| one.code().to_owned()));
        self.trail.push(format!(
            "{} {:?} {:?} {:?}",
            self.sim.now, made.wanted, made.nodes, made.jobs
        ));
        self.sim.away = away;
        if acts {
            self.sim.act(&self.controller, &made);
        }
    }

    /// The controller is killed, and another one begins with the book.
    pub(crate) fn restart(&mut self) {
        let lines: String = self
            .book
            .iter()
            .map(|entry| serde_json::to_string(entry).unwrap() + "\n")
            .collect();
        let book = Book::parse(&lines).unwrap();
        assert_eq!(&book, self.controller.book());
        self.controller = BatchController::new(&self.settings, book).unwrap();
    }

    pub(crate) fn state(&self, work: WorkId) -> &'static str {
        let state = self.controller.state(self.sim.now, work);
        state.unwrap().as_str()
    }

    /// The state of everything, for a failed test.
    fn picture(&self, work: WorkId) -> String {
        let trail = &self.trail[self.trail.len().saturating_sub(40)..];
        let counts = self.controller.book().works[&work].counts();
        format!("{trail:#?}\n{counts:?}\n{}", self.sim.picture())
    }

    /// Steps until the work is over; how long that took, milliseconds.
    pub(crate) fn until_over(&mut self, work: WorkId) -> i64 {
        let begin = self.sim.now;
        for _ in 0..20_000 {
            if self.controller.book().works[&work]
                .state(self.sim.now)
                .is_over()
            {
                return self.sim.now - begin;
            }
            self.step(true);
        }
        panic!("never over: {}", self.picture(work));
    }
}
