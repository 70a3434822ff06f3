//! What metadata servers answer to a run, in all forms, and the record of one. What is taken can be
//! gone on with, and is written as it is read.

use ebbtide_run::metadata::{Answer, Form, Heard};
use ebbtide_run::{Action, Event, Job, Moment, Record, Rhythm, Rules, Span, outcome};

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for form in Form::ALL {
        let answer = Answer {
            status: 200,
            flavor: Some("Google".to_owned()),
            body: text.to_owned(),
        };
        match form.hear(&answer, Some("vm-1")) {
            Ok(Heard::Notice { id, .. }) => {
                // What is called so by the server can be said back to it.
                assert_eq!(form.release(&id).is_some(), form.releases());
            }
            Ok(_) => {}
            Err(error) => assert!(error.to_string().len() < 1_000, "{error}"),
        }
        let _ = form.recognises(&answer);
        let _ = form.hears_risk(&answer);
    }
    if let Ok(record) = Record::parse(text) {
        can_be_gone_on_with(record);
    }
}

fn can_be_gone_on_with(record: Record) {
    let written = serde_json::to_string(&record).expect("numbers and texts");
    assert_eq!(Record::parse(&written).as_ref(), Ok(&record));
    let _ = outcome(&record.lives, Some(Span(3_600_000)), Span(1));
    let newest = record.newest().map(|checkpoint| checkpoint.id);
    let numbered = record.numbered;
    let rules = Rules::new(Rhythm::Every(Span(1_000)));
    let mut job = Job::new(rules, record).expect("rules that make sense");
    let begun = job.handle(Moment(0), Event::Instance { age: Span::ZERO });
    let expected = newest.map_or(Action::Start, Action::Restore);
    assert_eq!(begun, [expected]);
    job.handle(Moment(5), Event::Started);
    for action in job.handle(Moment(2_000), Event::Time) {
        if let Action::Save { id, .. } = action {
            assert!(id > numbered);
        }
    }
    job.handle(Moment(2_100), Event::Saved);
    assert!(Record::parse(&serde_json::to_string(job.record()).expect("as above")).is_ok());
}
