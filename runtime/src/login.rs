//! Logins that a running program can be given anew.
//!
//! A [`Login`] is a value that connections read when they are opened, as they read the files of
//! TLS. A reload tests the new value with a connection of its own and then replaces it. Connections
//! that are open go on with the value with which they were opened.

use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// How to log in somewhere. Clones share the value. `Debug` does not show it.
pub struct Login<T> {
    value: Arc<watch::Sender<T>>,
}

impl<T: Clone> Login<T> {
    /// The login at the start.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            value: Arc::new(watch::Sender::new(value)),
        }
    }

    /// The login for a connection that is opened now.
    #[must_use]
    pub fn current(&self) -> T {
        self.value.borrow().clone()
    }

    /// Replaces the login for all connections that are opened from now on.
    pub fn replace(&self, value: T) {
        self.value.send_replace(value);
    }

    /// Sees each replacement from now on.
    #[must_use]
    pub fn replacements(&self) -> watch::Receiver<T> {
        self.value.subscribe()
    }
}

impl<T> Clone for Login<T> {
    fn clone(&self) -> Self {
        Self {
            value: Arc::clone(&self.value),
        }
    }
}

impl<T> fmt::Debug for Login<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(***)")
    }
}

/// The outcome of a reload for one login. A refused one is an error of the client that tried it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewal {
    /// The configuration holds the login that is in use.
    Unchanged,
    /// The server accepts the new login. New connections use it.
    Accepted,
    /// New connections use it, and no server could be asked about it: why.
    Untested(String),
    /// More than a login has changed, which only a restart applies: what. The old one stays.
    NextStart(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_value_and_show_nothing() {
        let login = Login::new("old".to_owned());
        let clone = login.clone();
        let mut replacements = clone.replacements();
        login.replace("new".to_owned());
        assert_eq!(clone.current(), "new");
        assert!(replacements.has_changed().unwrap());
        assert_eq!(*replacements.borrow_and_update(), "new");
        assert!(!format!("{login:?}").contains("new"));
    }
}
