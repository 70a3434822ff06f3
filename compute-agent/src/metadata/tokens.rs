//! The session tokens of EC2's metadata, version 2. They prove that who asks can do more than follow a link; they are of one
//! guest, and gone when its listener is.

use ebbtide_model::{Seconds, Timestamp};
use std::collections::VecDeque;

/// How many tokens of one guest are remembered; the oldest go first. A tool that runs for each poll asks for one each time.
const MOST: usize = 256;

/// The tokens of one guest.
#[derive(Debug)]
pub struct Tokens {
    fresh: fn() -> String,
    issued: VecDeque<(String, Timestamp)>,
}

impl Tokens {
    /// None yet. `fresh` makes texts that nobody can guess.
    #[must_use]
    pub fn new(fresh: fn() -> String) -> Self {
        Self {
            fresh,
            issued: VecDeque::new(),
        }
    }

    pub(super) fn issue(&mut self, now: Timestamp, ttl: u32) -> String {
        let token = (self.fresh)();
        self.issued.retain(|(_, until)| *until > now);
        if self.issued.len() >= MOST {
            self.issued.pop_front();
        }
        self.issued
            .push_back((token.clone(), now.plus(Seconds(ttl))));
        token
    }

    pub(super) fn is_good(&self, token: &str, now: Timestamp) -> bool {
        self.issued
            .iter()
            .any(|(known, until)| known == token && *until > now)
    }
}
