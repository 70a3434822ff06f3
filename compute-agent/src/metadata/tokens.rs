//! The session tokens of EC2's metadata, version 2. A token proves that the client can do more than
//! follow a link. It belongs to one guest and expires with the guest's listener.

use ebbtide_model::{Seconds, Timestamp};
use std::collections::VecDeque;

/// Maximum number of remembered tokens of one guest; the oldest are dropped. A tool that is started
/// for each poll requests a token each time.
const MOST: usize = 256;

/// The tokens of one guest.
#[derive(Debug)]
pub struct Tokens {
    fresh: fn() -> String,
    issued: VecDeque<(String, Timestamp)>,
}

impl Tokens {
    /// An empty store. `fresh` makes unguessable texts.
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
