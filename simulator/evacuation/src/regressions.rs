//! Seeds that have failed once, kept in a file that tests replay.

use crate::run::WorldKind;
use crate::script::StepPositions;

/// A world that has failed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regression {
    pub world: WorldKind,
    pub seed: u64,
    /// How many steps its script has.
    pub steps: usize,
    /// Which of them matter; empty for all.
    pub places: StepPositions,
}

/// Reads the file: a line for each, `WORLD SEED STEPS [PLACES]`; `#` begins a comment.
///
/// # Errors
/// The line that cannot be read, and why.
pub fn parse_regressions(text: &str) -> Result<Vec<Regression>, String> {
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let at = |what: String| format!("line {}: {what}", number + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        let (world, seed, steps, places) = match words.as_slice() {
            [world, seed, steps] => (world, seed, steps, ""),
            [world, seed, steps, places] => (world, seed, steps, *places),
            _ => return Err(at("write WORLD SEED STEPS [PLACES]".to_owned())),
        };
        let number = |word: &str| {
            word.parse::<u64>()
                .map_err(|_| at(format!("{word:?} is not a number")))
        };
        all.push(Regression {
            world: world.parse().map_err(at)?,
            seed: number(seed)?,
            steps: usize::try_from(number(steps)?).map_err(|_| at("too many steps".to_owned()))?,
            places: places.parse().map_err(at)?,
        });
    }
    Ok(all)
}
