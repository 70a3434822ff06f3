//! How large a message the broker takes. AMQP does not tell; it is tried.

use ebbtide_amqp::{BrokerFault, BrokerSession, ConfirmChannel};
use lapin::BasicProperties;

use super::topology::StepError;
use crate::{BodyLimit, MAX_BODY_BYTES, QueuePrefix};

/// Publishes a message that is larger than any of this bus to a queue that does not exist. A broker
/// that would accept it drops it; a broker that refuses it names its limit.
pub(super) async fn look(
    session: &BrokerSession,
    prefix: &QueuePrefix,
) -> Result<BodyLimit, StepError> {
    let failed = |fault| StepError::of(fault, || "publish a large message".to_owned());
    let channel = ConfirmChannel::open(session).await.map_err(failed)?;
    let key = format!("{prefix}.without-consumer");
    let body = vec![b' '; MAX_BODY_BYTES + 1];
    let properties = BasicProperties::default();
    match channel.publish("", &key, false, &body, properties).await {
        Ok(_) => Ok(BodyLimit::Larger),
        Err(BrokerFault::Precondition(words)) => Ok(BodyLimit::AtMost(limit_in(&words))),
        Err(fault) => Err(failed(fault)),
    }
}

/// "message size 4194305 is larger than configured max size 1048576"; a broker with other words
/// takes at least less than what was tried.
fn limit_in(words: &str) -> u64 {
    let told = words.rsplit(' ').next().and_then(|last| last.parse().ok());
    let most = MAX_BODY_BYTES as u64;
    told.unwrap_or(most).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_words_are_understood() {
        let told =
            "PRECONDITION_FAILED - message size 4194305 is larger than configured max size 1048576";
        assert_eq!(limit_in(told), 1_048_576);
        assert_eq!(limit_in("too much"), MAX_BODY_BYTES as u64);
    }
}
