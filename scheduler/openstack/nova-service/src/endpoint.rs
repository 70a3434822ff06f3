//! The RPC endpoint of the Nova service: nova-scheduler's methods, and those of the base API.

use crate::facts::Facts;
use crate::select::{Selector, raised};
use ebbtide_nova_objects::{
    DeleteInstanceInfo, ObjectError, SyncInstanceInfo, UpdateInstanceInfo, Value as Wire,
    read_delete_aggregate, read_update_aggregates,
};
use oslo_messaging::{Endpoint, EndpointTarget, HandlerFuture, IncomingCall, RemoteError};
use serde_json::{Value, json};
use uuid::Uuid;

/// The methods of nova-scheduler.
pub(crate) const METHODS: &[&str] = &[
    "select_destinations",
    "update_aggregates",
    "delete_aggregate",
    "update_instance_info",
    "delete_instance_info",
    "sync_instance_info",
];

/// Topic `scheduler`, version 4.5 (`nova/scheduler/manager.py`).
pub(crate) struct SchedulerApi {
    pub(crate) selector: Selector,
}

impl Endpoint for SchedulerApi {
    fn target(&self) -> EndpointTarget {
        EndpointTarget::version(4, 5)
    }

    fn methods(&self) -> &[&str] {
        METHODS
    }

    fn handle(&self, call: IncomingCall) -> HandlerFuture<'_> {
        Box::pin(async move {
            if call.method == "select_destinations" {
                // The future of a whole decision is large: the queue's task should not carry it
                // inline.
                return Box::pin(self.selector.select(call)).await;
            }
            let args = Wire::from(&Value::Object(call.args));
            follow(&self.selector.facts, &call.method, &args)
            .await
            .map_err(|error| {
                tracing::warn!(code = error.code(), method = %call.method, "a cast cannot be read: {error}");
                raised(&error.fault())
            })?;
            Ok(Value::Null)
        })
    }
}

/// Handles the casts that keep a scheduler up to date.
///
/// # Errors
/// Arguments that cannot be read.
pub(crate) async fn follow(facts: &Facts, method: &str, args: &Wire) -> Result<(), ObjectError> {
    match method {
        "update_aggregates" => {
            let aggregates = read_update_aggregates(args)?;
            facts.write(|cloud| {
                for aggregate in aggregates {
                    cloud.put_aggregate(aggregate);
                }
            });
        }
        "delete_aggregate" => {
            let aggregate = read_delete_aggregate(args)?;
            facts.write(|cloud| cloud.remove_aggregate(aggregate.id));
        }
        "update_instance_info" => {
            let info = UpdateInstanceInfo::read(args)?;
            facts.database.instances_updated(&info).await;
        }
        "delete_instance_info" => {
            let info = DeleteInstanceInfo::read(args)?;
            if let Ok(uuid) = Uuid::parse_str(&info.uuid) {
                let confirmed = facts.write(|cloud| cloud.delete_instance_info(&info.host, uuid));
                facts.database.confirm_host(&info.host, confirmed).await;
            }
            facts.providers.mark_usage(&info.host);
        }
        "sync_instance_info" => {
            let info = SyncInstanceInfo::read(args)?;
            let uuids: Vec<Uuid> = info
                .uuids
                .iter()
                .filter_map(|uuid| Uuid::parse_str(uuid).ok())
                .collect();
            let confirmed = facts.write(|cloud| cloud.sync_instance_info(&info.host, &uuids));
            facts.database.confirm_host(&info.host, confirmed).await;
        }
        _ => {}
    }
    Ok(())
}

/// Namespace `baseapi`, version 1.1 (`nova/baserpc.py`).
pub(crate) struct BaseApi;

impl Endpoint for BaseApi {
    fn target(&self) -> EndpointTarget {
        EndpointTarget::version(1, 1).namespace("baseapi")
    }

    fn methods(&self) -> &[&str] {
        &["ping", "get_backdoor_port"]
    }

    fn handle(&self, call: IncomingCall) -> HandlerFuture<'_> {
        Box::pin(async move {
            if call.method == "ping" {
                let arg = call.args.get("arg").cloned().ok_or_else(|| {
                    RemoteError::builtin(
                        "TypeError",
                        "_BaseRPCAPI.ping() missing 1 required positional argument: 'arg'",
                    )
                })?;
                return Ok(json!({"service": "scheduler", "arg": arg}));
            }
            // This service has no backdoor.
            Ok(Value::Null)
        })
    }
}
