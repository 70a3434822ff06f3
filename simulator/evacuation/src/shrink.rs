//! A failing world made small: whatever can be left out is left out, as long as the same promise is
//! broken.

use crate::run::{SeedResult, Simulator, WorldKind};
use crate::script::{ScriptStep, StepPositions, script};
use crate::violation::Invariant;

/// Most worlds that are tried to make one small.
const TRIES: u32 = 3_000;

/// A failing world with as few steps as could be found.
#[derive(Debug, Clone)]
pub struct ShrunkWorld {
    /// The steps that matter, by their places in the script.
    pub places: StepPositions,
    /// What comes of them, with its story.
    pub outcome: SeedResult,
    /// How many worlds were tried.
    pub tried: u32,
}

struct Search<'a> {
    simulator: &'a Simulator,
    kind: WorldKind,
    seed: u64,
    all: &'a [ScriptStep],
    promise: Invariant,
    tried: u32,
}

impl Search<'_> {
    fn steps(&self, places: &[usize]) -> Vec<ScriptStep> {
        places
            .iter()
            .filter_map(|n| self.all.get(*n).copied())
            .collect()
    }

    fn fails(&mut self, places: &[usize]) -> bool {
        self.tried += 1;
        let outcome = self
            .simulator
            .run_steps(self.kind, self.seed, &self.steps(places), false);
        outcome.violation.is_some_and(|v| v.promise == self.promise)
    }

    /// Delta debugging (Zeller and Hildebrandt 2002): leaves out pieces, halving them until none
    /// can be left out.
    fn minimise(&mut self, mut places: Vec<usize>) -> Vec<usize> {
        let mut piece = places.len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            let mut smaller = false;
            while at < places.len() && self.tried < TRIES {
                let mut rest = places.clone();
                rest.drain(at..(at + piece).min(places.len()));
                if self.fails(&rest) {
                    places = rest;
                    smaller = true;
                } else {
                    at += piece;
                }
            }
            if self.tried >= TRIES || (piece == 1 && !smaller) {
                return places;
            }
            if !smaller || piece > 1 {
                piece = (piece / 2).max(1);
            }
        }
    }
}

impl Simulator {
    /// Makes a failing seed small. `None` if it does not fail.
    #[must_use]
    pub fn shrink(&self, kind: WorldKind, seed: u64, steps: usize) -> Option<ShrunkWorld> {
        let all = script(seed, steps);
        let violation = self.run_steps(kind, seed, &all, false).violation?;
        let mut search = Search {
            simulator: self,
            kind,
            seed,
            all: &all,
            promise: violation.promise,
            tried: 1,
        };
        let begin: Vec<usize> = (0..violation.step.min(all.len())).collect();
        let begin = if search.fails(&begin) {
            begin
        } else {
            (0..all.len()).collect()
        };
        let places = search.minimise(begin);
        let outcome = self.run_steps(kind, seed, &search.steps(&places), true);
        Some(ShrunkWorld {
            places: StepPositions(places),
            outcome,
            tried: search.tried,
        })
    }
}
