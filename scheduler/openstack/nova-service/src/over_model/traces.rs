//! The context of a request's trace in the messages of its preemption.

use super::newcomer;
use super::preemptions::Stage;
use crate::evacuate::PreemptionResult;
use crate::traces;
use ebbtide_telemetry::{Telemetry, TelemetrySettings, within};
use oslo_messaging::IncomingCall;
use serde_json::{Map, json};

/// What osprofiler says of a request, and the trace and parent that follow from it.
const BASE: &str = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736";
const PARENT: &str = "8d0c0f5a-27a5-4c0b-80f0-67aa0ba902b7";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Turns traces on in this process. There is no collector.
fn on() -> Telemetry {
    let settings = TelemetrySettings {
        otlp_endpoint: Some("http://127.0.0.1:1".to_owned()),
        // Only what Nova traces.
        sample: 0.0,
    };
    ebbtide_telemetry::start(&settings, "test", "1").unwrap()
}

fn call(context: serde_json::Value) -> IncomingCall {
    let mut call = IncomingCall::detached("select_destinations", Map::new());
    call.context = context.as_object().unwrap().clone();
    call
}

#[tokio::test]
async fn what_nova_traces_is_traced_and_its_notices_carry_the_trace() {
    let _on = on();
    let mut stage = Stage::new().await;
    let plan = stage.plan(newcomer(1), &[1, 2], 4).await;
    let mut agent = stage.take_agent();
    let life = async {
        for _ in 0..2 {
            let notice = agent.notice().await;
            agent.gone(&notice).await;
        }
    };
    let trace_info = json!({"hmac_key": "k", "base_id": BASE, "parent_id": PARENT});
    let span = traces::request(&call(json!({"trace_info": trace_info})));
    let request = span.context().unwrap();
    assert_eq!(request.trace_id(), TRACE);
    let (outcome, ()) = tokio::join!(within(Some(request), stage.carries_out(plan)), life);
    assert_eq!(outcome, PreemptionResult::Room(json!("the place")));
    let contexts: Vec<String> = agent.contexts.into_iter().flatten().collect();
    assert_eq!(contexts.len(), 2);
    for context in &contexts {
        assert!(context.starts_with(&format!("00-{TRACE}-")), "{context}");
        // Each is a child of the claim, which is one of the request.
        assert_ne!(*context, request.to_string());
    }
    assert_ne!(contexts[0], contexts[1]);
}

#[tokio::test]
async fn what_nova_does_not_trace_is_left_to_the_sample() {
    let _on = on();
    for context in [
        json!({}),
        json!({"trace_info": {"base_id": BASE}}),
        json!({"trace_info": {"base_id": "none", "parent_id": PARENT}}),
        json!({"trace_info": "text"}),
    ] {
        assert!(traces::request(&call(context)).context().is_none());
    }
}
