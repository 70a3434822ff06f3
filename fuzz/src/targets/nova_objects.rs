//! Nova's versioned objects in calls, casts, answers and notifications. Python's JSON takes what
//! JSON is.

use ebbtide_nova_objects as objects;
use ebbtide_nova_objects::notification;

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let json = serde_json::from_str::<serde_json::Value>(text);
    let value = match objects::parse(text) {
        Ok(value) => value,
        Err(error) => {
            assert!(json.is_err(), "JSON that Python would read: {error}");
            return;
        }
    };
    if let Ok(json) = &json {
        // Sorted keys or not, it is read to its end.
        let _ = objects::Value::from(json);
    }
    let context = objects::RpcContext::read(&value);
    if let Ok(call) = objects::SelectDestinations::read(&value) {
        let _ = (call.count(), call.is_rebuild());
        if let Ok(context) = &context {
            let _ = notification::legacy_payload(&call.request, context);
            let _ = notification::legacy_payload_after_versioned(&call.request, context);
        }
        let _ = notification::versioned_payload(&call.request);
    }
    if let Ok(request) = objects::ScheduleRequest::read(&value) {
        let _ = notification::versioned_payload(&request);
    }
    // Python's JSON knows NaN and infinity, what is written does not.
    if let (Ok(selection), Ok(_)) = (objects::Selection::read(&value), &json) {
        let written = selection.to_json();
        let again = objects::Selection::read(&objects::Value::from(&written)).expect("our own");
        assert_eq!(again.to_json(), written);
    }
    let _ = objects::read_reply(&value);
    let _ = objects::Instance::read(&value);
    let _ = objects::UpdateInstanceInfo::read(&value);
    let _ = objects::DeleteInstanceInfo::read(&value);
    let _ = objects::SyncInstanceInfo::read(&value);
    let _ = objects::read_flavor(&value);
    let _ = objects::read_numa_topology(&value);
    let _ = objects::read_pci_requests(&value);
    let _ = objects::read_network_metadata(&value);
    let _ = objects::read_aggregate(&value);
    let _ = objects::read_update_aggregates(&value);
    let _ = objects::read_delete_aggregate(&value);
}
