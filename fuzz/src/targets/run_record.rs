//! What metadata servers answer to a run, in all forms, and the record of one. What is taken can be
//! gone on with, and is written as it is read.

use ebbtide_run::metadata::{Form, MetadataResponse, MetadataSignal};
use ebbtide_run::{
    CheckpointSchedule, Rules, RunAction, RunEvent, RunJob, RunRecord, RunTime, Span, outcome,
};

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for form in Form::ALL {
        let answer = MetadataResponse {
            status: 200,
            flavor: Some("Google".to_owned()),
            body: text.to_owned(),
        };
        match form.parse_answer(&answer, Some("vm-1")) {
            Ok(MetadataSignal::Notice { id, .. }) => {
                // What is called so by the server can be said back to it.
                assert_eq!(form.release(&id).is_some(), form.releases());
            }
            Ok(_) => {}
            Err(error) => assert!(error.to_string().len() < 1_000, "{error}"),
        }
        let _ = form.recognises(&answer);
        let _ = form.reports_risk(&answer);
    }
    if let Ok(record) = RunRecord::parse(text) {
        can_be_gone_on_with(record);
    }
}

fn can_be_gone_on_with(record: RunRecord) {
    let written = serde_json::to_string(&record).expect("numbers and texts");
    assert_eq!(RunRecord::parse(&written).as_ref(), Ok(&record));
    let _ = outcome(&record.lives, Some(Span(3_600_000)), Span(1));
    let newest = record.newest().map(|checkpoint| checkpoint.id);
    let numbered = record.numbered;
    let rules = Rules::new(CheckpointSchedule::Every(Span(1_000)));
    let mut job = RunJob::new(rules, record).expect("rules that make sense");
    let begun = job.handle(RunTime(0), RunEvent::Instance { age: Span::ZERO });
    let expected = newest.map_or(RunAction::Start, RunAction::Restore);
    assert_eq!(begun, [expected]);
    job.handle(RunTime(5), RunEvent::Started);
    for action in job.handle(RunTime(2_000), RunEvent::Time) {
        if let RunAction::Save { id, .. } = action {
            assert!(id > numbered);
        }
    }
    job.handle(RunTime(2_100), RunEvent::Saved);
    assert!(RunRecord::parse(&serde_json::to_string(job.record()).expect("as above")).is_ok());
}
