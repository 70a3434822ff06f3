//! One call of the driver: bounded in time once it is its turn, and a panic in a driver is an
//! answer like any other.

use crate::clock::Clock;
use crate::driver::{Driver, DriverError};
use crate::fence::Fence;
use crate::protocol::{ActionId, DriverCall, DriverResult};
use ebbtide_model::{InterruptionBehaviour, ServerId};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Result of a call.
#[derive(Debug)]
pub(super) struct ActionResult {
    pub(super) action: ActionId,
    pub(super) server_id: ServerId,
    pub(super) words: &'static str,
    pub(super) result: Result<DriverResult, DriverError>,
}

/// `fence`: the operator's fence, and the host for which it is called.
pub(super) async fn drive(
    driver: Arc<dyn Driver>,
    action: ActionId,
    server_id: ServerId,
    what: DriverCall,
    fence: Option<(Fence, String)>,
    limit: Duration,
    clock: Arc<dyn Clock>,
) -> ActionResult {
    let words = what.words();
    if what == DriverCall::Fence {
        // Not by the driver, which may have all its turns in calls that hang; the fence has a limit
        // of its own.
        let result = match fence {
            Some((fence, host)) => fence
                .fence(&host, server_id)
                .await
                .map(|()| DriverResult::Fenced),
            None => Err(DriverError::Unsupported {
                driver: driver.name(),
                what: words,
                detail: "this agent has no fence.command".to_owned(),
            }),
        };
        return ActionResult {
            action,
            server_id,
            words,
            result,
        };
    }
    let _turn = driver.permit(&what).await;
    if let DriverCall::GiveNotice(notice) = &what {
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
            return ActionResult {
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
    ActionResult {
        action,
        server_id,
        words,
        result,
    }
}

async fn call(
    driver: &dyn Driver,
    server_id: ServerId,
    what: DriverCall,
) -> Result<DriverResult, DriverError> {
    match what {
        DriverCall::GiveNotice(notice) => driver
            .give_notice(server_id, &notice)
            .await
            .map(DriverResult::Noticed),
        DriverCall::WithdrawNotice(evacuation_id) => driver
            .withdraw_notice(server_id, evacuation_id)
            .await
            .map(|()| DriverResult::Withdrawn),
        DriverCall::Interrupt(behaviour) => match behaviour {
            InterruptionBehaviour::Terminate => driver.terminate(server_id).await,
            InterruptionBehaviour::Stop => driver.stop(server_id).await,
            InterruptionBehaviour::Hibernate => driver.hibernate(server_id).await,
            InterruptionBehaviour::LiveMigrate => driver.live_migrate(server_id).await,
        }
        .map(|()| DriverResult::Interrupted),
        // Handled above.
        DriverCall::Fence => Err(DriverError::Unsupported {
            driver: driver.name(),
            what: "fence the server",
            detail: "drivers do not fence".to_owned(),
        }),
        DriverCall::Look => {
            let occupancy = driver.occupancy(server_id).await?;
            let unbilled = driver.unbilled(server_id).await;
            let storage = driver.saved_storage(server_id).await;
            Ok(DriverResult::Seen {
                occupancy,
                unbilled,
                storage,
            })
        }
        DriverCall::Start(start) => driver.start(&start).await.map(DriverResult::Started),
        DriverCall::Delete(None) => driver
            .delete(server_id)
            .await
            .map(|()| DriverResult::Deleted),
        DriverCall::Delete(Some(storage)) => driver
            .delete_saved(server_id, &storage)
            .await
            .map(|()| DriverResult::Deleted),
    }
}
