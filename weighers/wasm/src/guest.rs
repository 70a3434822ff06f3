//! The state of one call: the remaining limits, and the guest's output.

use crate::SandboxLimits;
use std::fmt;
use std::sync::Arc;
use wasmtime::{Engine, Store, StoreLimits, StoreLimitsBuilder, Trap};

/// Nanoseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;
/// Fills a buffer with random bytes.
pub type Randomness = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// What a plugin gets besides its input. Default: nothing.
#[derive(Clone, Default)]
pub struct Grants {
    /// The time.
    pub clock: Option<Clock>,
    /// Real random numbers.
    pub randomness: Option<Randomness>,
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grants")
            .field("clock", &self.clock.is_some())
            .field("randomness", &self.randomness.is_some())
            .finish()
    }
}

/// What a call has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// Units of work.
    pub work: u64,
}

/// Maximum length of a guest's output that is kept, in bytes: long enough for the message before a
/// panic, which comes last.
const SAID: usize = 4 << 10;
/// More than components of one language with its runtime are made of; fewer than would hurt.
const PARTS: usize = 64;
const TABLE_ELEMENTS: usize = 1 << 20;

/// What belongs to one call.
pub(crate) struct CallStore {
    limits: StoreLimits,
    memory_bytes: usize,
    output: Vec<u8>,
    pub(crate) grants: Grants,
    /// State of the pseudo-random numbers for a plugin that asks for random ones without a grant.
    chance: u64,
}

impl CallStore {
    /// A store for one call.
    pub(crate) fn store(
        engine: &Engine,
        limits: &SandboxLimits,
        grants: &Grants,
        rows: usize,
    ) -> Result<Store<Self>, String> {
        let guest = Self {
            limits: StoreLimitsBuilder::new()
                .memory_size(limits.memory_bytes)
                .table_elements(TABLE_ELEMENTS)
                .instances(PARTS)
                .tables(PARTS)
                .memories(PARTS)
                .trap_on_grow_failure(true)
                .build(),
            memory_bytes: limits.memory_bytes,
            output: Vec::new(),
            grants: grants.clone(),
            chance: 0x9e37_79b9_7f4a_7c15,
        };
        let mut store = Store::new(engine, guest);
        store.limiter(|guest| &mut guest.limits);
        store
            .set_fuel(limits.work_of(rows))
            .map_err(|error| error.to_string())?;
        Ok(store)
    }

    /// It writes to its standard output or error.
    pub(crate) fn append_output(&mut self, words: &[u8]) {
        self.output.extend_from_slice(words);
        let beyond = self.output.len().saturating_sub(SAID);
        self.output.drain(..beyond);
    }

    /// Random bytes: real ones if the operator has granted them, else the same ones in every call.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        if let Some(randomness) = &self.grants.randomness {
            return randomness(bytes);
        }
        for chunk in bytes.chunks_mut(8) {
            // SplitMix64.
            self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.chance;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let word = (z ^ (z >> 31)).to_le_bytes();
            chunk
                .iter_mut()
                .zip(word)
                .for_each(|(byte, given)| *byte = given);
        }
    }
}

/// What a call has used so far.
pub(crate) fn used(store: &Store<CallStore>, limits: &SandboxLimits, rows: usize) -> CallUsage {
    let left = store.get_fuel().unwrap_or(0);
    CallUsage {
        work: limits.work_of(rows).saturating_sub(left),
    }
}

/// Why a call ended, in words.
pub(crate) fn explain(
    store: &Store<CallStore>,
    error: &wasmtime::Error,
    limits: &SandboxLimits,
    rows: usize,
) -> String {
    let guest = store.data();
    let words = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => format!(
            "used up its {} units of work (work + {rows} rows × work_per_row)",
            limits.work_of(rows)
        ),
        Some(Trap::StackOverflow) => "used up its stack".to_owned(),
        Some(Trap::MemoryOutOfBounds) => {
            "touched memory that it does not have, or used up its stack".to_owned()
        }
        Some(Trap::UnreachableCodeReached) => "panicked".to_owned(),
        Some(trap) => format!("trapped: {trap}"),
        None => {
            let innermost = error.root_cause().to_string();
            match innermost.contains("growing memory")
                || innermost.contains("exceeds memory limits")
            {
                true => format!(
                    "wanted more memory than its {} KiB",
                    guest.memory_bytes >> 10
                ),
                false => innermost,
            }
        }
    };
    let output = String::from_utf8_lossy(&guest.output);
    match output.trim() {
        "" => words,
        output => format!("{words}; it said: {output}"),
    }
}
