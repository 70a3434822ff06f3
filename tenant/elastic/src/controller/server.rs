//! A preemptible server as the controller sees it.

use std::fmt;

/// A preemptible server: a number that is given once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u64);

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transient-{}", self.0)
    }
}

/// What a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Asked for, not yet there.
    Provisioning,
    /// Takes tasks.
    Active,
    /// Ends what it has, takes nothing new; it is kept if the load comes back.
    Draining,
    /// The same, and the provider is going to take it.
    Leaving,
    /// Being deleted.
    Releasing,
}

/// A state and since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerEntry {
    pub(super) state: ServerState,
    pub(super) since_us: u64,
}

/// How many servers are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Asked for, not yet there.
    pub provisioning: u32,
    /// Take tasks.
    pub active: u32,
    /// End what they have.
    pub draining: u32,
    /// End what they have, and will be taken.
    pub leaving: u32,
    /// Being deleted.
    pub releasing: u32,
}

impl Census {
    /// All of them: what counts against the budget.
    #[must_use]
    pub fn all(&self) -> u32 {
        self.provisioning + self.up() + self.releasing
    }

    /// Those that are there and have tasks, or may have some.
    #[must_use]
    pub fn up(&self) -> u32 {
        self.active + self.draining + self.leaving
    }

    fn of(&mut self, state: ServerState) -> &mut u32 {
        match state {
            ServerState::Provisioning => &mut self.provisioning,
            ServerState::Active => &mut self.active,
            ServerState::Draining => &mut self.draining,
            ServerState::Leaving => &mut self.leaving,
            ServerState::Releasing => &mut self.releasing,
        }
    }

    pub(super) fn enter(&mut self, state: ServerState) {
        *self.of(state) += 1;
    }

    pub(super) fn leave(&mut self, state: ServerState) {
        let count = self.of(state);
        *count = count.saturating_sub(1);
    }
}
