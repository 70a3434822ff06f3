//! Cases with names.

#![allow(
    clippy::unwrap_used,
    reason = "test code: clippy knows test functions, but not their helpers in this folder"
)]

use ebbtide_lifetime::distributions::Bathtub;
use ebbtide_lifetime::plan::checkpoint::{CheckpointOptions, Planner};
use ebbtide_run::{
    CheckpointReason, CheckpointSchedule, Rules, RunAction, RunEnd, RunError, RunEvent, RunJob,
    RunRecord, RunTime, Span, WorkEnd, outcome,
};
use std::sync::Arc;

const SECOND: u64 = 1_000;

fn at(seconds: u64) -> RunTime {
    RunTime(seconds * SECOND)
}

fn hourly() -> Rules {
    Rules::new(CheckpointSchedule::Every(Span(3_600 * SECOND)))
}

/// A job whose process runs since 0 s.
fn running(rules: Rules) -> RunJob {
    let mut job = RunJob::new(rules, RunRecord::default()).unwrap();
    let age = Span::ZERO;
    assert_eq!(
        job.handle(at(0), RunEvent::Instance { age }),
        [RunAction::Start]
    );
    assert_eq!(job.handle(at(0), RunEvent::Started), []);
    job
}

fn notice(seconds: u64) -> RunEvent {
    let deadline = at(seconds);
    RunEvent::Notice { deadline }
}

const SAVE_ON_NOTICE: [RunAction; 1] = [RunAction::Save {
    id: 1,
    why: CheckpointReason::Notice,
}];

#[test]
fn a_notice_saves_all_work_and_gives_the_rest_of_the_time_back() {
    let mut job = running(hourly());
    assert_eq!(job.handle(at(100), notice(130)), SAVE_ON_NOTICE);
    assert_eq!(
        job.handle(at(104), RunEvent::Saved),
        [RunAction::Kill, RunAction::Release]
    );
    assert_eq!(job.handle(at(105), RunEvent::Gone), [RunAction::Await]);
    let age = Span::ZERO;
    let again = job.handle(at(110), RunEvent::Instance { age });
    assert_eq!(again, [RunAction::Restore(1)]);
    job.handle(at(112), RunEvent::Started);
    assert_eq!(job.work(), Span(100 * SECOND));
    assert_eq!(job.record().lost, Span::ZERO);
    assert_eq!(job.record().lives[0].end, WorkEnd::Interrupted);
    assert_eq!(job.record().restart(), Some(Span(2 * SECOND)));
}

#[test]
fn where_time_cannot_be_given_back_it_is_used_and_saved_once_more() {
    let rules = Rules {
        releases: false,
        ..hourly()
    };
    let mut job = running(rules);
    assert_eq!(job.handle(at(100), notice(220)), SAVE_ON_NOTICE);
    assert_eq!(job.handle(at(104), RunEvent::Saved), []);
    // Four seconds, and a quarter more.
    assert_eq!(job.wake_at(), Some(at(215)));
    let why = CheckpointReason::Notice;
    assert_eq!(
        job.handle(at(215), RunEvent::Time),
        [RunAction::Save { id: 2, why }]
    );
    assert_eq!(job.handle(at(219), RunEvent::Saved), [RunAction::Kill]);
    assert_eq!(job.record().newest().unwrap().work, Span(211 * SECOND));
}

#[test]
fn a_checkpoint_that_does_not_fit_is_tried_only_if_the_job_does_not_end_before() {
    let mut job = running(hourly());
    let why = CheckpointReason::LastTry;
    let tried = job.handle(at(100), notice(101));
    assert_eq!(tried, [RunAction::Save { id: 1, why }]);
    let ends = Rules {
        length: Some(Span(101 * SECOND)),
        ..hourly()
    };
    let mut job = running(ends);
    assert_eq!(job.handle(at(100), notice(102)), []);
    let code = 0;
    assert_eq!(
        job.handle(at(101), RunEvent::Exited { code }),
        [RunAction::Finish(RunEnd::Exited { code })]
    );
}

#[test]
fn a_process_that_another_program_ended_has_not_ended_its_job() {
    // A machine that is shut down sends SIGTERM to everybody, the job's process among them.
    let mut job = running(hourly());
    assert_eq!(job.handle(at(100), notice(130)), SAVE_ON_NOTICE);
    let code = 143;
    assert_eq!(
        job.handle(at(101), RunEvent::Killed { code }),
        [
            RunAction::Abandon(1),
            RunAction::Finish(RunEnd::Killed { code })
        ]
    );
    let record = job.record().clone();
    assert_eq!((record.exit, record.failed), (None, 1));
    assert_eq!(record.lives[0].end, WorkEnd::Interrupted);
    let mut next = RunJob::new(hourly(), record).unwrap();
    let age = Span::ZERO;
    assert_eq!(
        next.handle(at(0), RunEvent::Instance { age }),
        [RunAction::Start]
    );
    // What was not saved has to be done again.
    assert_eq!(next.record().lost, Span(100 * SECOND));
}

#[test]
fn a_job_that_is_about_to_end_is_saved_at_the_last_moment_only() {
    let rules = Rules {
        length: Some(Span(110 * SECOND)),
        ..hourly()
    };
    let mut job = running(rules);
    assert_eq!(job.handle(at(100), notice(130)), []);
    assert_eq!(job.wake_at(), Some(at(120)));
    assert_eq!(job.handle(at(120), RunEvent::Time), SAVE_ON_NOTICE);
}

#[test]
fn who_is_spared_after_the_checkpoint_goes_on_from_it() {
    let mut job = running(hourly());
    job.handle(at(100), notice(130));
    job.handle(at(104), RunEvent::Saved);
    assert_eq!(
        job.handle(at(110), RunEvent::Spared),
        [RunAction::Restore(1)]
    );
    assert_eq!(job.record().lives[0].end, WorkEnd::Stayed);
    let mut job = running(hourly());
    job.handle(at(100), notice(101));
    job.handle(at(101), RunEvent::Spared);
    assert_eq!(job.handle(at(105), RunEvent::Saved), []);
    assert_eq!(job.record().lives.len(), 1);
}

#[test]
fn a_checkpoint_that_hangs_is_given_up_and_tried_again_later() {
    let mut job = running(Rules {
        timeout: Span(60 * SECOND),
        ..hourly()
    });
    let why = CheckpointReason::Planned;
    assert_eq!(job.wake_at(), Some(at(3_600)));
    let save = job.handle(at(3_600), RunEvent::Time);
    assert_eq!(save, [RunAction::Save { id: 1, why }]);
    assert_eq!(job.wake_at(), Some(at(3_660)));
    assert_eq!(
        job.handle(at(3_660), RunEvent::Time),
        [RunAction::Abandon(1)]
    );
    // Four times ten seconds.
    assert_eq!(job.wake_at(), Some(at(3_700)));
    let save = job.handle(at(3_700), RunEvent::Time);
    assert_eq!(save, [RunAction::Save { id: 2, why }]);
    assert_eq!(job.record().failed, 1);
    assert_eq!(job.record().newest(), None);
}

#[test]
fn a_checkpoint_that_cannot_be_restored_gives_way_to_the_one_before() {
    let mut job = running(Rules::new(CheckpointSchedule::Every(Span(10 * SECOND))));
    for seconds in [10, 22] {
        job.handle(at(seconds), RunEvent::Time);
        job.handle(at(seconds + 2), RunEvent::Saved);
    }
    assert_eq!(
        job.handle(at(30), RunEvent::Gone),
        [RunAction::Kill, RunAction::Await]
    );
    let age = Span::ZERO;
    let first = job.handle(at(40), RunEvent::Instance { age });
    assert_eq!(first, [RunAction::Restore(2)]);
    let second = job.handle(at(41), RunEvent::RestoreFailed);
    assert_eq!(second, [RunAction::Restore(1)]);
    job.handle(at(42), RunEvent::Started);
    // Six seconds since the second, ten in it.
    assert_eq!(job.record().lost, Span(16 * SECOND));
    let mut again = job.clone();
    again.handle(at(43), RunEvent::Gone);
    again.handle(at(44), RunEvent::Instance { age });
    assert_eq!(
        again.handle(at(45), RunEvent::RestoreFailed),
        [RunAction::Finish(RunEnd::CannotRestore)]
    );
    assert_eq!(
        again.record().checkpoints.len(),
        2,
        "nothing is thrown away"
    );
}

#[test]
fn the_user_stops_with_a_checkpoint_and_at_once_the_second_time() {
    let mut job = running(hourly());
    let why = CheckpointReason::Stop;
    assert_eq!(
        job.handle(at(50), RunEvent::Stop),
        [RunAction::Save { id: 1, why }]
    );
    let mut impatient = job.clone();
    let saved = RunEnd::Stopped { saved: true };
    assert_eq!(
        job.handle(at(53), RunEvent::Saved),
        [RunAction::Kill, RunAction::Finish(saved)]
    );
    let unsaved = RunEnd::Stopped { saved: false };
    assert_eq!(
        impatient.handle(at(51), RunEvent::Stop),
        [
            RunAction::Abandon(1),
            RunAction::Kill,
            RunAction::Finish(unsaved)
        ]
    );
    assert_eq!(job.handle(at(54), RunEvent::Stop), []);
}

#[test]
fn a_job_that_is_asked_to_save_saves_and_goes_on() {
    let mut job = running(hourly());
    let why = CheckpointReason::Asked;
    assert_eq!(
        job.handle(at(50), RunEvent::Save),
        [RunAction::Save { id: 1, why }]
    );
    // What is being saved is what was asked for.
    assert_eq!(job.handle(at(51), RunEvent::Save), []);
    assert_eq!(job.handle(at(53), RunEvent::Saved), []);
    assert_eq!(job.record().newest().unwrap().work, Span(50 * SECOND));
    // Under a notice it is saved for that.
    let mut noticed = running(hourly());
    assert_eq!(noticed.handle(at(100), notice(130)), SAVE_ON_NOTICE);
    assert_eq!(noticed.handle(at(101), RunEvent::Save), []);
}

#[test]
fn a_run_that_was_killed_is_gone_on_with_and_its_loss_is_counted() {
    let mut job = running(Rules::new(CheckpointSchedule::Every(Span(10 * SECOND))));
    job.handle(at(10), RunEvent::Time);
    job.handle(at(12), RunEvent::Saved);
    job.handle(at(19), RunEvent::Risk);
    let written = serde_json::to_string(job.record()).unwrap();
    let record = RunRecord::parse(&written).unwrap();
    let mut next = RunJob::new(hourly(), record).unwrap();
    let age = Span::ZERO;
    let actions = next.handle(at(0), RunEvent::Instance { age });
    assert_eq!(actions, [RunAction::Restore(1)]);
    assert_eq!(next.record().lost, Span(7 * SECOND));
    assert!(next.record().lives[0].interrupted());
}

#[test]
fn notices_that_are_not_heeded_change_nothing() {
    let mut job = running(Rules {
        heeds: false,
        ..hourly()
    });
    assert_eq!(job.handle(at(100), notice(130)), []);
    assert_eq!(
        job.handle(at(130), RunEvent::Gone),
        [RunAction::Kill, RunAction::Await]
    );
}

#[test]
fn the_rhythm_of_a_model_is_the_plan_of_the_command() {
    let model = Bathtub::new(0.414, 0.94, 0.77, 24.45, 24.0).unwrap();
    let options = CheckpointOptions {
        step: 5.0 / 120.0,
        cost: 1.0 / 60.0,
        final_checkpoint: false,
        ..CheckpointOptions::default()
    };
    let planner = Planner::new(&model, 5.0, 0.0, &options).unwrap();
    let rhythm = CheckpointSchedule::Model(Arc::new(model));
    let minute = Span(60 * SECOND);
    let length = Some(Span::from_hours(5.0));
    let interval = rhythm.interval(length, Span::ZERO, minute, Span::ZERO);
    assert_eq!(
        interval,
        Some(Span::from_hours(planner.schedule().intervals[0]))
    );
    // In the middle of its life an instance is safe: less is saved.
    let later = rhythm.interval(length, Span::from_hours(6.0), minute, Span::ZERO);
    assert!(later > interval, "{later:?} {interval:?}");
    // Older than the model thinks possible, and jobs without a length, have a rhythm all the same.
    for (length, hours) in [(length, 30.0), (None, 0.0)] {
        let some = rhythm.interval(length, Span::from_hours(hours), minute, Span::ZERO);
        assert!(some.is_some_and(|span| span > minute), "{some:?}");
    }
}

#[test]
fn hourly_checkpoints_are_reckoned_on_the_same_lives() {
    let mut job = running(Rules {
        keep: 1,
        ..hourly()
    });
    job.handle(at(5_400), notice(5_500));
    job.handle(at(5_460), RunEvent::Saved);
    job.handle(at(5_460), RunEvent::Gone);
    let hour = Span(3_600 * SECOND);
    let minute = Span(60 * SECOND);
    let lives = &job.record().lives;
    let hourly = outcome(lives, Some(hour), minute);
    // 91 minutes are there: an hour, its checkpoint, and half an hour that is lost.
    assert_eq!(hourly.checkpoints, 1);
    assert_eq!(hourly.lost, Span(30 * 60 * SECOND));
    assert_eq!(outcome(lives, None, minute).lost, Span(91 * 60 * SECOND));
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let zero = Span::ZERO;
    let refused = |rules: Rules| RunJob::new(rules, RunRecord::default()).unwrap_err();
    for rules in [
        Rules::new(CheckpointSchedule::Every(zero)),
        Rules {
            length: Some(zero),
            ..hourly()
        },
        Rules {
            timeout: zero,
            ..hourly()
        },
        Rules {
            keep: 0,
            ..hourly()
        },
    ] {
        let error = refused(rules);
        assert!(matches!(error, RunError::Zero { .. }));
        assert_eq!(error.code(), "EB-RUN-001");
    }
}

#[test]
fn records_of_others_are_not_believed() {
    let good = serde_json::to_value(RunRecord::default()).unwrap();
    assert!(RunRecord::parse(&good.to_string()).is_ok());
    let point = |id: u64| serde_json::json!({ "id": id, "work": 1 });
    for (key, value) in [
        ("checkpoints", serde_json::json!([point(2), point(1)])),
        ("checkpoints", serde_json::json!([point(1)])),
        ("costs", serde_json::json!([1, 1, 1, 1, 1, 1])),
        ("lost", serde_json::json!(-1)),
        ("saved", serde_json::json!(1)),
        ("numbered", serde_json::json!(u64::MAX)),
        ("more", serde_json::json!(0)),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        let error = RunRecord::parse(&bad.to_string()).unwrap_err();
        assert_eq!(error.code(), "EB-RUN-002", "{bad}");
    }
}

#[test]
fn a_checkpoint_that_works_again_brings_back_what_it_had() {
    let mut job = running(Rules::new(CheckpointSchedule::Every(Span(10 * SECOND))));
    for seconds in [10, 22] {
        job.handle(at(seconds), RunEvent::Time);
        job.handle(at(seconds + 2), RunEvent::Saved);
    }
    let age = Span::ZERO;
    job.handle(at(24), RunEvent::Gone);
    job.handle(at(25), RunEvent::Instance { age });
    job.handle(at(25), RunEvent::RestoreFailed);
    assert_eq!(job.record().lost, Span(10 * SECOND));
    let mut elsewhere = RunJob::new(hourly(), job.record().clone()).unwrap();
    let actions = elsewhere.handle(at(0), RunEvent::Instance { age });
    assert_eq!(actions, [RunAction::Restore(2)]);
    assert_eq!(elsewhere.record().lost, Span::ZERO);
}

#[test]
fn lives_of_any_length_are_compared_at_once() {
    let life = ebbtide_run::InstanceWork {
        age: Span::ZERO,
        from: Span::ZERO,
        lasted: Span(u64::MAX),
        restoring: Span::ZERO,
        saving: Span::ZERO,
        reached: Span::ZERO,
        end: WorkEnd::Interrupted,
    };
    let each = outcome(&[life, life], Some(Span(3)), Span(2));
    assert_eq!(each.checkpoints, 2 * (u64::MAX / 5));
    let never_ending = outcome(&[life], Some(Span::ZERO), Span::ZERO);
    assert_eq!(never_ending.checkpoints, 0);
}

#[test]
fn a_state_file_is_read_in_whole_or_for_its_record_and_refused_if_it_was_changed() {
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Contents {
        command: String,
        record: RunRecord,
    }
    let mut record = RunRecord {
        numbered: 1,
        saved: 1,
        ..RunRecord::default()
    };
    record.checkpoints.push(ebbtide_run::Checkpoint {
        id: 1,
        work: Span(5),
    });
    let contents = Contents {
        command: "job".to_owned(),
        record: record.clone(),
    };
    let text = ebbtide_run::write_state(&contents);
    let read = ebbtide_run::read_state::<Contents>(text.as_bytes());
    assert_eq!(read, Ok(contents));
    assert_eq!(
        ebbtide_run::read_record(text.as_bytes()),
        Ok(record.clone())
    );
    // A record that cannot be, under a checksum that is right.
    record.numbered = 0;
    let odd = ebbtide_run::write_state(&Contents {
        command: "job".to_owned(),
        record,
    });
    for bad in [
        text.replace("job", "jab"),
        text.replace("run/1", "run/2"),
        text[..text.len() / 2].to_owned(),
        String::new(),
        odd,
    ] {
        let error = ebbtide_run::read_record(bad.as_bytes()).unwrap_err();
        assert_eq!(error.code(), "EB-RUN-002", "{bad}");
        assert!(ebbtide_run::read_state::<Contents>(bad.as_bytes()).is_err());
    }
}
