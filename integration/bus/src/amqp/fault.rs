//! Sorts lapin's errors into those that waiting may heal and those that need a person.

use lapin::ErrorKind;

// Reply codes of AMQP 0-9-1, section 1.2.
const ACCESS_REFUSED: u16 = 403;
const CONTENT_TOO_LARGE: u16 = 311;
const NOT_ALLOWED: u16 = 530;
const NOT_IMPLEMENTED: u16 = 540;
const PRECONDITION_FAILED: u16 = 406;

/// What an error of lapin means for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BrokerFault {
    /// The network, a broker that is starting or stopping, a channel that died: try again.
    Transient(String),
    /// 403: wrong password while connecting, missing permission later.
    AccessRefused(String),
    /// 406: the queue has other properties, or the message is too large for the broker.
    Precondition(String),
    /// The broker will never do this, for example because the vhost does not exist.
    Refused(String),
}

impl BrokerFault {
    pub(crate) fn of(error: &lapin::Error) -> Self {
        let ErrorKind::ProtocolError(protocol) = error.kind() else {
            return Self::Transient(error.to_string());
        };
        let detail = protocol.get_message().to_string();
        match protocol.get_id() {
            ACCESS_REFUSED => Self::AccessRefused(detail),
            PRECONDITION_FAILED => Self::Precondition(detail),
            NOT_ALLOWED | NOT_IMPLEMENTED | CONTENT_TOO_LARGE => Self::Refused(detail),
            // 404 included: a queue that was deleted between our declare and our consume.
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
        assert_eq!(fault(406), BrokerFault::Precondition(words.clone()));
        assert_eq!(fault(530), BrokerFault::Refused(words.clone()));
        // Connection forced, internal error, not found, resource locked.
        for code in [320, 541, 404, 405] {
            assert_eq!(fault(code), BrokerFault::Transient(words.clone()), "{code}");
        }
        let io = lapin::Error::from(std::io::Error::other("cable cut"));
        assert!(
            matches!(BrokerFault::of(&io), BrokerFault::Transient(text) if text.contains("cable cut"))
        );
    }
}
