//! Sorts lapin's errors into those that a retry may heal and those that need a person.

use lapin::ErrorKind;

// Reply codes of AMQP 0-9-1, section 1.2.
const CONTENT_TOO_LARGE: u16 = 311;
const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const PRECONDITION_FAILED: u16 = 406;
const NOT_ALLOWED: u16 = 530;
const NOT_IMPLEMENTED: u16 = 540;

/// The meaning of an error of lapin. Each variant holds the broker's or lapin's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerFault {
    /// The network, a broker that is starting or stopping, a channel that died: try again.
    Transient(String),
    /// 403: wrong password while connecting, missing permission later.
    AccessRefused(String),
    /// 406: the queue or exchange has other properties, or the message is too large for the broker.
    Precondition(String),
    /// 404: the queue or exchange does not exist. It may have been deleted between two steps.
    NotFound(String),
    /// The broker will never do this, for example because the vhost does not exist.
    Refused(String),
}

impl BrokerFault {
    /// Classifies an error of lapin.
    #[must_use]
    pub fn of(error: &lapin::Error) -> Self {
        let ErrorKind::ProtocolError(protocol) = error.kind() else {
            return Self::Transient(error.to_string());
        };
        let detail = protocol.get_message().to_string();
        match protocol.get_id() {
            ACCESS_REFUSED => Self::AccessRefused(detail),
            PRECONDITION_FAILED => Self::Precondition(detail),
            NOT_FOUND => Self::NotFound(detail),
            NOT_ALLOWED | NOT_IMPLEMENTED | CONTENT_TOO_LARGE => Self::Refused(detail),
            _ => Self::Transient(detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapin::protocol::AMQPError;

    fn fault(code: u16) -> BrokerFault {
        let protocol = AMQPError::from_id(code, "words of the broker".into()).unwrap();
        BrokerFault::of(&ErrorKind::ProtocolError(protocol).into())
    }

    #[test]
    fn only_what_waiting_cannot_heal_is_given_up() {
        let words = "words of the broker".to_owned();
        assert_eq!(fault(403), BrokerFault::AccessRefused(words.clone()));
        assert_eq!(fault(404), BrokerFault::NotFound(words.clone()));
        assert_eq!(fault(406), BrokerFault::Precondition(words.clone()));
        assert_eq!(fault(530), BrokerFault::Refused(words.clone()));
        // Connection forced, internal error, resource locked.
        for code in [320, 541, 405] {
            assert_eq!(fault(code), BrokerFault::Transient(words.clone()), "{code}");
        }
        let io = lapin::Error::from(std::io::Error::other("cable cut"));
        assert!(
            matches!(BrokerFault::of(&io), BrokerFault::Transient(text) if text.contains("cable cut"))
        );
    }
}
