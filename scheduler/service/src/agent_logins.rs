//! Which broker login may report for which host.

use crate::config::{AgentIdentity, Bus};
use ebbtide_access::AccessError;
use std::collections::BTreeMap;

/// The mapping from `[bus]`.
#[derive(Debug, Clone)]
pub(crate) struct AgentLogins {
    verify: bool,
    template: String,
    users: BTreeMap<String, Vec<String>>,
}

impl AgentLogins {
    pub(crate) fn of(bus: &Bus) -> Self {
        Self {
            verify: bus.agent_identity == AgentIdentity::UserId,
            template: bus.agent_user.clone(),
            users: bus.agent_users.clone(),
        }
    }

    /// The login of a host's own agent; empty if agents need none. A login of several hosts is not
    /// one of these.
    pub(crate) fn own(&self, host: &str) -> String {
        match self.verify {
            true => self.template.replace("{host}", host),
            false => String::new(),
        }
    }

    /// Checks whether a report about `host` may come from `user`, the login that the broker has
    /// verified, if there is one.
    ///
    /// # Errors
    /// [`AccessError::OtherHost`].
    pub(crate) fn check(&self, user: Option<&str>, host: &str) -> Result<(), AccessError> {
        if !self.verify {
            return Ok(());
        }
        let own = user.is_some_and(|user| user == self.template.replace("{host}", host));
        let among = user
            .and_then(|user| self.users.get(user))
            .is_some_and(|hosts| hosts.iter().any(|h| h == "*" || h == host));
        if own || among {
            return Ok(());
        }
        Err(AccessError::OtherHost {
            user: ebbtide_model::names::shorten(user.unwrap_or_default()),
            host: ebbtide_model::names::shorten(host),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speakers(identity: AgentIdentity) -> AgentLogins {
        let mut bus = Bus {
            agent_identity: identity,
            ..Bus::default()
        };
        bus.agent_users
            .insert("nova-agent".to_owned(), vec!["*".to_owned()]);
        bus.agent_users
            .insert("rack".to_owned(), vec!["r1".to_owned(), "r2".to_owned()]);
        AgentLogins::of(&bus)
    }

    #[test]
    fn a_login_speaks_for_its_own_host_only() {
        let speakers = speakers(AgentIdentity::UserId);
        for (user, host, may) in [
            (Some("agent-h1"), "h1", true),
            (Some("agent-h1"), "h2", false),
            (Some("agent-h1"), "h1.example", false),
            (Some("agent-"), "", true),
            (Some("h1"), "h1", false),
            (None, "h1", false),
            (Some("nova-agent"), "any", true),
            (Some("rack"), "r2", true),
            (Some("rack"), "r3", false),
        ] {
            assert_eq!(speakers.check(user, host).is_ok(), may, "{user:?} {host}");
        }
        let error = speakers.check(Some("agent-h1"), "h2").unwrap_err();
        assert_eq!(error.code(), "EB-ACCESS-012");
    }

    #[test]
    fn anybody_is_believed_where_identities_are_not_configured() {
        assert!(speakers(AgentIdentity::None).check(None, "h").is_ok());
    }
}
