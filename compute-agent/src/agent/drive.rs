//! One call of the driver: bounded in time once it is its turn, and a panic in a driver is an
//! answer like any other.

use crate::clock::Clock;
use crate::driver::{Driver, DriverError};
use crate::fence::Fence;
use crate::protocol::{Action, ActionId, Done};
use ebbtide_model::{InterruptionBehaviour, ServerId};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Result of a call.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) action: ActionId,
    pub(super) server_id: ServerId,
    pub(super) words: &'static str,
    pub(super) result: Result<Done, DriverError>,
}

/// `fence`: the operator's fence, and the host for which it is called.
pub(super) async fn drive(
    driver: Arc<dyn Driver>,
    action: ActionId,
    server_id: ServerId,
    what: Action,
    fence: Option<(Fence, String)>,
    limit: Duration,
    clock: Arc<dyn Clock>,
) -> Answer {
    let words = what.words();
    if what == Action::Fence {
        // Not by the driver, which may have all its turns in calls that hang; the fence has a limit
        // of its own.
        let result = match fence {
            Some((fence, host)) => fence.fence(&host, server_id).await.map(|()| Done::Fenced),
            None => Err(DriverError::Unsupported {
                driver: driver.name(),
                what: words,
                detail: "this agent has no fence.command".to_owned(),
            }),
        };
        return Answer {
            action,
            server_id,
            words,
            result,
        };
    }
    let _turn = driver.permit(&what).await;
    if let Action::GiveNotice(notice) = &what {
        let left_ms = notice.begin_before.millis_since(clock.now());
        let takes_ms = i64::try_from(driver.notice_takes().as_millis()).unwrap_or(i64::MAX);
        if left_ms < takes_ms {
            // A call without enough time left would only delay others until their time is over,
            // too.
            let result = Err(DriverError::NotBegun {
                what: words,
                left_ms,
                takes_ms,
            });
            return Answer {
                action,
                server_id,
                words,
                result,
            };
        }
    }
    let call = AssertUnwindSafe(call(&*driver, server_id, what)).catch_unwind();
    let result = match tokio::time::timeout(limit, call).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(DriverError::Failed {
            what: words,
            detail: format!("the {} driver panicked; this is a defect", driver.name()),
        }),
        Err(_) => Err(DriverError::TimedOut {
            what: words,
            seconds: limit.as_secs(),
        }),
    };
    Answer {
        action,
        server_id,
        words,
        result,
    }
}

async fn call(driver: &dyn Driver, server_id: ServerId, what: Action) -> Result<Done, DriverError> {
    match what {
        Action::GiveNotice(notice) => driver
            .give_notice(server_id, &notice)
            .await
            .map(Done::Noticed),
        Action::WithdrawNotice(evacuation_id) => driver
            .withdraw_notice(server_id, evacuation_id)
            .await
            .map(|()| Done::Withdrawn),
        Action::Interrupt(behaviour) => match behaviour {
            InterruptionBehaviour::Terminate => driver.terminate(server_id).await,
            InterruptionBehaviour::Stop => driver.stop(server_id).await,
            InterruptionBehaviour::Hibernate => driver.hibernate(server_id).await,
            InterruptionBehaviour::LiveMigrate => driver.live_migrate(server_id).await,
        }
        .map(|()| Done::Interrupted),
        // Handled above.
        Action::Fence => Err(DriverError::Unsupported {
            driver: driver.name(),
            what: "fence the server",
            detail: "drivers do not fence".to_owned(),
        }),
        Action::Look => {
            let occupancy = driver.occupancy(server_id).await?;
            let unbilled = driver.unbilled(server_id).await;
            let storage = driver.kept_in(server_id).await;
            Ok(Done::Seen {
                occupancy,
                unbilled,
                storage,
            })
        }
        Action::Start(start) => driver.start(&start).await.map(Done::Started),
        Action::Delete(None) => driver.delete(server_id).await.map(|()| Done::Deleted),
        Action::Delete(Some(storage)) => driver
            .delete_kept(server_id, &storage)
            .await
            .map(|()| Done::Deleted),
    }
}
