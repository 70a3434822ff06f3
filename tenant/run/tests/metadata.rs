//! What clouds say about interruptions, and what is made of it.

use ebbtide_run::metadata::{Form, MetadataResponse, MetadataSignal};

fn answer(status: u16, body: &str) -> MetadataResponse {
    MetadataResponse {
        status,
        flavor: None,
        body: body.to_owned(),
    }
}

fn notice(id: &str, not_before: Option<i64>) -> MetadataSignal {
    MetadataSignal::Notice {
        id: id.to_owned(),
        not_before,
    }
}

/// 2026-11-23T12:00:30Z.
const THEN: i64 = 1_795_435_230_000;

const OURS: &str = r#"{"evacuation_id":"01a1","action":"terminate","grace_seconds":30,"not_before":"2026-11-23T12:00:30.000Z","released":false}"#;
const AZURE: &str = r#"{"DocumentIncarnation":2,"Events":[{"EventId":"A1","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["vm-1"],
    "EventStatus":"Scheduled","NotBefore":"Mon, 23 Nov 2026 12:00:30 GMT","Description":"","EventSource":"Platform","DurationInSeconds":-1}]}"#;

#[test]
fn notices_are_heard_in_every_form() {
    let action = r#"{"action": "terminate", "time": "2026-11-23T12:00:30Z"}"#;
    for (form, status, body, heard) in [
        (Form::Ebbtide, 200, OURS, notice("01a1", Some(THEN))),
        (Form::Ec2, 200, action, notice("terminate", Some(THEN))),
        (Form::Gce, 200, "TRUE", notice("", None)),
        (Form::Azure, 200, AZURE, notice("A1", Some(THEN))),
        (
            Form::Ebbtide,
            404,
            "404 - Not Found",
            MetadataSignal::Nothing,
        ),
        (
            Form::Ec2,
            404,
            "<?xml version=\"1.0\"?>",
            MetadataSignal::Nothing,
        ),
        (Form::Gce, 200, "FALSE\n", MetadataSignal::Nothing),
        (
            Form::Azure,
            200,
            r#"{"DocumentIncarnation":1,"Events":[]}"#,
            MetadataSignal::Nothing,
        ),
    ] {
        let said = form.parse_answer(&answer(status, body), None).unwrap();
        assert_eq!(said, heard, "{form:?} {body}");
    }
}

#[test]
fn who_is_moved_alive_and_who_is_not_meant_goes_on() {
    let moved = OURS.replace("terminate", "live-migrate");
    let heard = Form::Ebbtide.parse_answer(&answer(200, &moved), None);
    assert_eq!(heard, Ok(MetadataSignal::Nothing));
    let frozen = AZURE.replace("Preempt", "Freeze");
    let heard = Form::Azure.parse_answer(&answer(200, &frozen), None);
    assert_eq!(heard, Ok(MetadataSignal::Nothing));
    let others = Form::Azure.parse_answer(&answer(200, AZURE), Some("vm-2"));
    assert_eq!(others, Ok(MetadataSignal::Nothing));
    let ours = Form::Azure.parse_answer(&answer(200, AZURE), Some("vm-1"));
    assert_eq!(ours, Ok(notice("A1", Some(THEN))));
    let begun = AZURE.replace("Mon, 23 Nov 2026 12:00:30 GMT", "");
    let begun = Form::Azure.parse_answer(&answer(200, &begun), None);
    assert_eq!(begun, Ok(notice("A1", None)));
}

#[test]
fn what_is_not_understood_is_not_taken_for_silence() {
    for (form, status, body) in [
        (Form::Ebbtide, 200, "<html>"),
        (Form::Ebbtide, 503, ""),
        (Form::Ec2, 200, r#"{"action":"stop","time":"soon"}"#),
        (Form::Ec2, 401, ""),
        (Form::Gce, 200, "MAYBE"),
        (Form::Gce, 404, ""),
        (Form::Azure, 404, ""),
        (Form::Azure, 200, r#"{"Events":[{}]}"#),
    ] {
        let error = form.parse_answer(&answer(status, body), None).unwrap_err();
        assert_eq!(error.code(), "EB-RUN-003", "{form:?} {status} {body}");
        assert!(error.to_string().len() < 250, "{error}");
    }
}

#[test]
fn each_form_is_recognised_by_its_own_answer_only() {
    let gce = MetadataResponse {
        flavor: Some("Google".to_owned()),
        ..answer(200, "FALSE")
    };
    let answers = [
        answer(200, "latest\nebbtide/v1/\n"),
        gce,
        answer(200, r#"{"DocumentIncarnation":1,"Events":[]}"#),
        answer(200, "AQAEAJ_token=="),
    ];
    for (form, good) in Form::ALL.into_iter().zip(&answers) {
        assert!(form.recognises(good), "{form:?}");
        assert!(!form.recognises(&answer(404, &good.body)), "{form:?}");
        assert!(!form.recognises(&answer(200, "")), "{form:?}");
    }
    // EC2's token may be any text, so it is looked for last.
    assert_eq!(Form::ALL.last(), Some(&Form::Ec2));
}

#[test]
fn time_is_given_back_in_the_forms_that_know_it() {
    for form in Form::ALL {
        assert_eq!(form.release("X").is_some(), form.releases(), "{form:?}");
    }
    let azure = Form::Azure.release("A1").unwrap();
    assert_eq!(azure.body, r#"{"StartRequests":[{"EventId":"A1"}]}"#);
    let ours = Form::Ebbtide.release("01a1").unwrap();
    assert_eq!(ours.body, r#"{"evacuation_id":"01a1"}"#);
}
