//! How large a message the broker takes. AMQP does not tell; it is tried.

use std::sync::{Mutex, PoisonError};

use lapin::BasicProperties;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};

use ebbtide_amqp::{BrokerFault, BrokerSession, while_alive};

use super::link::Link;
use super::topology::StepError;
use crate::{BackoffPolicy, BodyLimit, BusError, MAX_BODY_BYTES, QueuePrefix};

/// Publishes a message that is larger than any of this bus to a queue that does not exist. A broker
/// that would accept it drops it; a broker that refuses it names its limit.
pub(super) async fn look(
    link: &Link,
    prefix: &QueuePrefix,
    last_problem: &Mutex<String>,
) -> Result<BodyLimit, BusError> {
    loop {
        let session = link.session().await.ok_or(BusError::Closed)?;
        match while_alive(&session, try_it(&session, prefix)).await {
            Ok(limit) => return Ok(limit),
            Err(StepError::Final(error)) => return Err(error),
            Err(StepError::Again(problem)) => {
                *last_problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
            }
        }
        tokio::time::sleep(BackoffPolicy::default().first).await;
    }
}

async fn try_it(session: &BrokerSession, prefix: &QueuePrefix) -> Result<BodyLimit, StepError> {
    let describe = || "publish a large message".to_owned();
    let failed = |error: lapin::Error| StepError::during(&error, describe);
    let channel = session.channel().await.map_err(failed)?;
    let confirms = ConfirmSelectOptions::default();
    channel.confirm_select(confirms).await.map_err(failed)?;
    let sent = channel
        .basic_publish(
            "".into(),
            format!("{prefix}.nobody-reads-this").as_str().into(),
            BasicPublishOptions::default(),
            &vec![b' '; MAX_BODY_BYTES + 1],
            BasicProperties::default(),
        )
        .await;
    let confirmed = match sent {
        Ok(confirm) => confirm.await,
        Err(error) => Err(error),
    };
    match confirmed {
        Ok(_) => Ok(BodyLimit::Larger),
        Err(error) => match BrokerFault::of(&error) {
            BrokerFault::Precondition(words) => Ok(BodyLimit::AtMost(limit_in(&words))),
            _ => Err(failed(error)),
        },
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
