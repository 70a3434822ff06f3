//! What the model does when writes meet, and when answers are lost.

use crate::generator::{consumer, provider};
use ebbtide_openstack::placement::Generation;
use ebbtide_openstack::{AllocationResult, NewClaim, RequestEffect, Resources};
use ebbtide_placement_model::{InProcess, Model, ModelRequest, ScriptedStep, TransportFault};
use serde_json::json;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// In the process nothing has to be waited for.
fn at_once<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits for something"),
    }
}

fn one_host() -> InProcess {
    let mut model = Model::new();
    model.add_host(provider(1), "host1", 8, 0, 0);
    InProcess::new(model)
}

fn claim(n: u128, vcpus: u64, generation: Option<u64>) -> NewClaim {
    let amounts = BTreeMap::from([(provider(1), BTreeMap::from([("VCPU".to_owned(), vcpus)]))]);
    NewClaim {
        consumer: consumer(n),
        resources: Resources::from_amounts(&amounts).unwrap(),
        project_id: "p".to_owned(),
        user_id: "u".to_owned(),
        generation: generation.map(Generation),
    }
}

#[test]
fn two_writes_that_meet_take_more_than_there_is_as_on_the_real_one() {
    let placement = one_host();
    let other = |model: &mut Model| {
        let body = json!({"allocations": {provider(1).to_string(): {"resources": {"VCPU": 5}}}, "project_id": "p", "user_id": "u",
            "consumer_generation": null});
        let path = format!("/allocations/{}", consumer(2));
        let request = ModelRequest {
            method: "PUT",
            path: &path,
            version: (1, 36),
            body: Some(&body),
        };
        assert_eq!(model.ask(request).status, 204);
    };
    placement.once("PUT /allocations/", ScriptedStep::During(Box::new(other)));
    let claimed = at_once(placement.client().claim_new(&claim(1, 5, None))).unwrap();
    assert_eq!(claimed, AllocationResult::Yes);
    let over = placement.model(|model| model.over_capacity());
    assert_eq!(over, [(provider(1), "VCPU".to_owned())]);
    let generation = placement.model(|model| model.provider(provider(1)).unwrap().generation);
    assert_eq!(generation, 3, "both have raised it");
}

#[test]
fn one_after_the_other_they_do_not() {
    let placement = one_host();
    let client = placement.client();
    assert_eq!(
        at_once(client.claim_new(&claim(1, 5, None))).unwrap(),
        AllocationResult::Yes
    );
    let second = at_once(client.claim_new(&claim(2, 5, None))).unwrap();
    assert!(
        matches!(second, AllocationResult::No { status: 409, .. }),
        "{second:?}"
    );
    assert!(placement.model(|model| model.over_capacity()).is_empty());
    assert!(
        placement.model(|model| model.consumer(consumer(2)).is_none()),
        "nothing is left of it"
    );
}

#[test]
fn a_lost_answer_leaves_the_effect_and_a_request_that_was_not_heard_does_not() {
    let placement = one_host();
    let client = placement.client();
    placement.once("PUT", ScriptedStep::Fault(TransportFault::NotHeard));
    let error = at_once(client.put_allocations(&claim(1, 2, None))).unwrap_err();
    assert_eq!(error.effect(), RequestEffect::None);
    assert_eq!(placement.model(|model| model.used(provider(1), "VCPU")), 0);
    placement.once("PUT", ScriptedStep::Fault(TransportFault::AnswerLost));
    let error = at_once(client.put_allocations(&claim(1, 2, None))).unwrap_err();
    assert_eq!(error.effect(), RequestEffect::Unknown);
    assert_eq!(placement.model(|model| model.used(provider(1), "VCPU")), 2);
    placement.once("PUT", ScriptedStep::Fault(TransportFault::Silence));
    let error = at_once(client.put_allocations(&claim(2, 2, None))).unwrap_err();
    assert_eq!(error.effect(), RequestEffect::Unknown);
    assert_eq!(placement.model(|model| model.used(provider(1), "VCPU")), 2);
    assert_eq!(placement.asked("PUT /allocations/"), 3);
}

#[test]
fn a_consumer_that_changes_during_a_write_is_a_conflict() {
    let placement = one_host();
    let client = placement.client();
    at_once(client.put_allocations(&claim(1, 2, None))).unwrap();
    let deleted = |model: &mut Model| model.forget(consumer(1));
    placement.once("PUT", ScriptedStep::During(Box::new(deleted)));
    let error = at_once(client.put_allocations(&claim(1, 3, Some(1)))).unwrap_err();
    assert_eq!(error.code(), "EB-HTTP-005", "{error}");
    assert_eq!(placement.model(|model| model.used(provider(1), "VCPU")), 0);
}
