//! The controller, told in small stories.

use crate::common;

use common::{SETTINGS, Scene, instance, job, manager, manager_of, node, resting, said, up};
use ebbtide_burst::slurm::{Ageing, BaseState, JobState};
use ebbtide_burst::{BurstAction, Decisions, Status};

#[test]
fn six_nodes_are_asked_for_when_long_jobs_have_all_that_stay() {
    let mut manager = manager();
    let heard = Scene::busy().look(&mut manager, 0);
    let six: Vec<String> = (1..=6).map(|at| format!("power up c{at}")).collect();
    assert_eq!(said(&heard), six);
    assert_eq!((heard.target, heard.ratio), (6, Some(1.0)));
}

#[test]
fn nothing_is_asked_for_while_short_jobs_have_the_nodes() {
    let mut scene = Scene::busy();
    scene.jobs = vec![job(1, "short", "s1"), job(2, "short", "s2")];
    assert_eq!(said(&scene.look(&mut manager(), 0)), [""; 0]);
}

#[test]
fn a_node_that_was_not_requested_is_not_started() {
    let mut scene = Scene::busy();
    scene.jobs.clear();
    scene.set(node("c3", BaseState::Idle, &["CLOUD", "POWERED_DOWN"]));
    assert_eq!(said(&scene.look(&mut manager(), 0)), ["rest c3"]);
}

#[test]
fn a_node_takes_jobs_once_its_slurmd_answers_and_not_before() {
    let mut manager = manager();
    let mut scene = Scene::busy();
    scene.look(&mut manager, 0);
    scene.instances.push(instance("c1", Status::Active));
    scene.set(node(
        "c1",
        BaseState::Idle,
        &["CLOUD", "DRAIN", "POWERING_UP", "NOT_RESPONDING"],
    ));
    assert_eq!(said(&scene.look(&mut manager, 1)), [""; 0]);
    scene.set(node("c1", BaseState::Idle, &["CLOUD", "DRAIN"]));
    assert_eq!(said(&scene.look(&mut manager, 2)), ["open c1"]);
}

#[test]
fn what_was_said_and_had_no_effect_is_said_again_and_not_each_second() {
    let mut manager = manager();
    let scene = Scene::busy();
    assert_eq!(said(&scene.look(&mut manager, 0)).len(), 6);
    assert_eq!(said(&scene.look(&mut manager, 1)).len(), 0);
    assert_eq!(said(&scene.look(&mut manager, 6)).len(), 6);
}

#[test]
fn a_notice_drains_signals_requeues_and_gives_back_in_this_order() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    scene.jobs.push(job(9, "short", "c1"));
    scene.set(node("c1", BaseState::Allocated, &["CLOUD"]));
    scene.instances[0].status = Status::Leaving;
    scene.instances[0].deadline_ms = Some(60_000);
    assert_eq!(
        said(&scene.look(&mut manager, 20)),
        ["drain c1", "signal 9"]
    );
    scene.set(node("c1", BaseState::Allocated, &["CLOUD", "DRAIN"]));
    // It has two seconds to save its work.
    assert_eq!(said(&scene.look(&mut manager, 21)), [""; 0]);
    assert_eq!(said(&scene.look(&mut manager, 22)), ["requeue 9"]);
    let job = scene.jobs.last_mut().unwrap();
    (job.state, job.reason, job.nodes) = (JobState::Pending, "BeginTime".to_owned(), Vec::new());
    job.restarts = 1;
    scene.set(node("c1", BaseState::Idle, &["CLOUD", "DRAIN"]));
    assert_eq!(
        said(&scene.look(&mut manager, 23)),
        ["power down c1", "start 9"]
    );
    // The region knows it no more, Slurm has it off: the node is free for the next one, since six
    // are still wanted.
    scene.instances.remove(0);
    scene.set(resting("c1"));
    let job = scene.jobs.last_mut().unwrap();
    (job.state, job.nodes) = (JobState::Running, vec!["c2".to_owned()]);
    assert_eq!(said(&scene.look(&mut manager, 24)), ["power up c1"]);
}

#[test]
fn a_job_that_ends_before_its_instance_is_left_alone() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    let mut short = job(9, "short", "c1");
    (short.start_ms, short.limit_minutes) = (20_000, Some(1));
    scene.jobs.push(short);
    scene.instances[0].status = Status::Leaving;
    scene.instances[0].deadline_ms = Some(120_000);
    assert_eq!(said(&scene.look(&mut manager, 30)), ["drain c1"]);
}

#[test]
fn jobs_are_put_back_before_the_instance_ends_even_if_they_have_not_had_their_time() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    scene.jobs.push(job(9, "short", "c1"));
    scene.set(node("c1", BaseState::Allocated, &["CLOUD", "DRAIN"]));
    scene.instances[0].status = Status::Leaving;
    // Three seconds are the margin, one is left.
    scene.instances[0].deadline_ms = Some(24_000);
    scene.look(&mut manager, 20);
    assert_eq!(said(&scene.look(&mut manager, 21)), ["requeue 9"]);
}

#[test]
fn a_dead_instance_is_told_to_slurm_at_once_and_its_jobs_start_again() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    scene.jobs.push(job(9, "short", "c2"));
    scene.instances.remove(1);
    let heard = scene.look(&mut manager, 20);
    assert_eq!(said(&heard), ["down c2"]);
    scene.set(node("c2", BaseState::Down, &["CLOUD", "NOT_RESPONDING"]));
    let job = scene.jobs.last_mut().unwrap();
    job.state = JobState::Completing;
    // Slurm crashes if nodes are taken away under jobs that are being cleaned up: nothing is
    // powered down before.
    assert_eq!(said(&scene.look(&mut manager, 21)), [""; 0]);
    let job = scene.jobs.last_mut().unwrap();
    (job.state, job.nodes, job.eligible_ms) = (JobState::Pending, Vec::new(), 150_000);
    assert_eq!(
        said(&scene.look(&mut manager, 22)),
        ["power down c2", "start 9"]
    );
}

#[test]
fn a_node_that_never_comes_up_is_given_up_and_the_region_left_alone_for_a_while() {
    let mut manager = manager();
    let mut scene = Scene::busy();
    scene.look(&mut manager, 0);
    scene.instances.push(instance("c1", Status::Active));
    // What Slurm makes of it after ResumeTimeout.
    scene.set(node("c1", BaseState::Down, &["CLOUD", "NOT_RESPONDING"]));
    let heard = scene.look(&mut manager, 40);
    assert!(said(&heard).starts_with(&["delete id-c1".to_owned(), "power down c1".to_owned()]));
    assert_eq!(heard.troubles[0].code(), "EB-BURST-009");
    scene.instances.clear();
    scene.set(resting("c1"));
    assert!(!said(&scene.look(&mut manager, 50)).contains(&"power up c1".to_owned()));
    assert!(said(&scene.look(&mut manager, 71)).contains(&"power up c1".to_owned()));
}

#[test]
fn a_launch_that_takes_too_long_is_given_back() {
    let mut manager = manager();
    let mut scene = Scene::busy();
    scene.look(&mut manager, 0);
    scene.instances.push(instance("c1", Status::Coming));
    scene.set(node(
        "c1",
        BaseState::Idle,
        &["CLOUD", "POWERING_UP", "NOT_RESPONDING"],
    ));
    assert!(said(&scene.look(&mut manager, 61)).contains(&"power down c1".to_owned()));
}

#[test]
fn a_region_without_room_is_asked_again_later() {
    let mut manager = manager();
    let mut scene = Scene::busy();
    scene.look(&mut manager, 0);
    let mut none = instance("c1", Status::Failed);
    none.reason = "no valid host".to_owned();
    scene.instances.push(none);
    let heard = scene.look(&mut manager, 1);
    assert_eq!(heard.troubles[0].code(), "EB-BURST-008");
    assert_eq!(said(&heard)[..2], ["delete id-c1", "power down c1"]);
}

#[test]
fn a_budget_used_up_asks_for_nothing_and_gives_back_what_is_there() {
    let mut scene = Scene::busy();
    scene.broke = true;
    assert_eq!(said(&scene.look(&mut manager(), 0)), [""; 0]);
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    scene.broke = true;
    let drained = |heard: &ebbtide_burst::Decisions| {
        said(heard)
            .iter()
            .filter(|one| one.starts_with("drain"))
            .count()
    };
    assert_eq!(drained(&scene.look(&mut manager, 20)), 1);
    assert_eq!(drained(&scene.look(&mut manager, 21)), 1);
}

#[test]
fn a_new_controller_goes_on_with_the_instances_that_are_there() {
    let scene = Scene::grown(&mut manager());
    let heard = scene.look(&mut manager(), 100);
    assert_eq!(said(&heard), [""; 0]);
    assert_eq!(heard.target, 6);
}

#[test]
fn of_two_instances_for_one_node_the_younger_one_goes() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    let mut second = instance("c1", Status::Active);
    second.id = "id-c1-later".to_owned();
    scene.instances.push(second);
    assert_eq!(said(&scene.look(&mut manager, 20)), ["delete id-c1-later"]);
}

#[test]
fn less_load_drains_the_idlest_node_and_gives_it_back_when_it_is_empty() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    scene.jobs = vec![job(1, "long", "s1")];
    scene.jobs.extend(
        (1..=6)
            .filter(|at| *at != 4)
            .map(|at| job(10 + at, "short", &format!("c{at}"))),
    );
    assert_eq!(said(&scene.look(&mut manager, 20)), ["drain c4"]);
    scene.set(node("c4", BaseState::Idle, &["CLOUD", "DRAIN"]));
    assert!(said(&scene.look(&mut manager, 21)).contains(&"power down c4".to_owned()));
}

#[test]
fn a_node_that_the_operator_drained_stays_drained() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    let mut looked_at = node("c1", BaseState::Idle, &["CLOUD", "DRAIN"]);
    looked_at.reason = "disk".to_owned();
    scene.set(looked_at);
    assert_eq!(said(&scene.look(&mut manager, 20)), [""; 0]);
}

#[test]
fn slurm_knows_the_instance_of_a_node_and_since_when() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    scene.set(up("c1"));
    let heard = scene.look(&mut manager, 30);
    let label = heard.actions.iter().find_map(|action| match action {
        BurstAction::Label { node, label } if node == "c1" => Some(label),
        _ => None,
    });
    assert_eq!(label.unwrap().comment, "ebbtide-batch: id-c1 since 1");
}

#[test]
fn a_node_that_slurm_started_by_itself_is_one_of_those_that_were_wanted() {
    let mut manager = manager();
    let mut scene = Scene::busy();
    // Slurm reports no node as powered down yet, so no server gets a node.
    for at in 1..=6 {
        scene.set(node(
            &format!("c{at}"),
            BaseState::Allocated,
            &["CLOUD", "POWERING_UP"],
        ));
    }
    assert_eq!(said(&scene.look(&mut manager, 0)), [""; 0]);
    for at in 1..=6 {
        scene.set(up(&format!("c{at}")));
        scene
            .instances
            .push(instance(&format!("c{at}"), Status::Active));
    }
    let six: Vec<String> = (1..=6).map(|at| format!("open c{at}")).collect();
    assert_eq!(said(&scene.look(&mut manager, 5)), six);
}

#[test]
fn a_clock_that_was_set_back_an_hour_stops_nothing() {
    let mut manager = manager();
    let scene = Scene::busy();
    assert_eq!(said(&scene.look(&mut manager, 7_200)).len(), 6);
    assert_eq!(said(&scene.look(&mut manager, 7_203)).len(), 0);
    assert_eq!(said(&scene.look(&mut manager, 3_600)).len(), 0);
    assert_eq!(said(&scene.look(&mut manager, 3_605)).len(), 6);
}

#[test]
fn what_was_asked_for_in_vain_is_not_asked_for_again_once_the_budget_is_used_up() {
    let mut manager = manager();
    let mut scene = Scene::busy();
    assert_eq!(said(&scene.look(&mut manager, 0)).len(), 6);
    scene.broke = true;
    assert_eq!(said(&scene.look(&mut manager, 6)), [""; 0]);
}

#[test]
fn what_was_asked_for_in_vain_is_given_up_where_slurm_has_started_another_by_itself() {
    let text = SETTINGS.replace("c[1-6]", "c[1-8]");
    let mut manager = manager_of(&text);
    let mut scene = Scene::busy();
    scene.nodes.push(resting("c7"));
    scene
        .nodes
        .push(node("c8", BaseState::Allocated, &["CLOUD", "POWERING_UP"]));
    let ups = |heard: &Decisions| {
        let ups = said(heard).into_iter();
        ups.filter(|one| one.starts_with("power up")).count()
    };
    assert_eq!(ups(&scene.look(&mut manager, 0)), 6);
    scene.instances.push(instance("c8", Status::Coming));
    assert_eq!(ups(&scene.look(&mut manager, 6)), 5);
}

#[test]
fn an_instance_that_is_being_given_up_counts_until_it_is_gone() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    // Slurm has given it up, the region is slow to delete it.
    scene.set(node("c1", BaseState::Down, &["CLOUD", "NOT_RESPONDING"]));
    let heard = said(&scene.look(&mut manager, 20));
    assert!(heard.contains(&"delete id-c1".to_owned()), "{heard:?}");
    scene.set(node("c1", BaseState::Idle, &["CLOUD", "POWERED_DOWN"]));
    for at in [21, 22, 23] {
        assert!(
            !said(&scene.look(&mut manager, at))
                .iter()
                .any(|one| one.starts_with("power up"))
        );
    }
    // What is lost is said again.
    assert!(said(&scene.look(&mut manager, 30)).contains(&"delete id-c1".to_owned()));
    scene.instances.remove(0);
    assert!(said(&scene.look(&mut manager, 31)).contains(&"power up c1".to_owned()));
}

#[test]
fn a_node_that_waits_for_an_instance_that_failed_is_given_back_until_slurm_has_done_so() {
    let mut manager = manager();
    let mut scene = Scene::busy();
    scene.look(&mut manager, 0);
    let starting = ["CLOUD", "DRAIN", "POWERING_UP", "NOT_RESPONDING"];
    scene.set(node("c1", BaseState::Idle, &starting));
    scene.instances.push(instance("c1", Status::Failed));
    assert!(said(&scene.look(&mut manager, 1)).contains(&"power down c1".to_owned()));
    scene.instances.clear();
    assert!(said(&scene.look(&mut manager, 7)).contains(&"power down c1".to_owned()));
}

#[test]
fn nodes_that_came_up_unobserved_are_not_given_up_as_late() {
    let mut manager = manager();
    let mut scene = Scene::busy();
    scene.look(&mut manager, 0);
    for at in 1..=6 {
        scene.set(up(&format!("c{at}")));
        scene
            .instances
            .push(instance(&format!("c{at}"), Status::Active));
    }
    // slurmctld was away for longer than a launch may take.
    let six: Vec<String> = (1..=6).map(|at| format!("open c{at}")).collect();
    assert_eq!(said(&scene.look(&mut manager, 600)), six);
}

#[test]
fn an_instance_beside_one_that_died_counts_until_it_is_gone() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    scene.instances[0].status = Status::Coming;
    let ups = |heard: &Decisions| said(heard).iter().any(|one| one.starts_with("power up"));
    assert!(!ups(&scene.look(&mut manager, 20)));
    scene.set(resting("c1"));
    assert!(!ups(&scene.look(&mut manager, 21)));
    scene.instances.remove(0);
    assert!(ups(&scene.look(&mut manager, 22)));
}

#[test]
fn a_job_whose_launch_failed_after_it_lost_its_node_is_released_and_not_for_ever() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    let mut held = job(9, "short", "");
    (held.launch_failed, held.reason, held.restarts) = (true, "JobHeldUser".to_owned(), 2);
    scene.jobs.push(held);
    assert_eq!(said(&scene.look(&mut manager, 20)), ["release 9"]);
    // Slurm may be slow to do it.
    assert_eq!(said(&scene.look(&mut manager, 21)), [""; 0]);
    let job = scene.jobs.last_mut().unwrap();
    (job.launch_failed, job.reason) = (false, "BeginTime".to_owned());
    assert_eq!(said(&scene.look(&mut manager, 22)), ["start 9"]);
    let job = scene.jobs.last_mut().unwrap();
    (job.launch_failed, job.reason) = (true, "JobHeldUser".to_owned());
    assert_eq!(said(&scene.look(&mut manager, 30)), ["release 9"]);
    assert_eq!(said(&scene.look(&mut manager, 40)), ["release 9"]);
    let heard = scene.look(&mut manager, 50);
    assert_eq!(said(&heard), [""; 0]);
    assert_eq!(heard.troubles[0].code(), "EB-BURST-013");
    // Once it has run for a minute, it was launched well.
    let job = scene.jobs.last_mut().unwrap();
    (job.launch_failed, job.state, job.start_ms) = (false, JobState::Running, 50_000);
    scene.look(&mut manager, 111);
    let job = scene.jobs.last_mut().unwrap();
    (job.launch_failed, job.state) = (true, JobState::Pending);
    assert_eq!(said(&scene.look(&mut manager, 120)), ["release 9"]);
}

#[test]
fn holds_of_others_and_first_launches_that_fail_are_left_alone() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    // By its user; on its first node, which may be broken.
    for (id, launch_failed, restarts) in [(9, false, 2), (10, true, 1)] {
        let mut held = job(id, "short", "");
        (held.launch_failed, held.restarts) = (launch_failed, restarts);
        held.reason = "JobHeldUser".to_owned();
        scene.jobs.push(held);
    }
    assert_eq!(said(&scene.look(&mut manager, 20)), [""; 0]);
}

/// Ten points of priority a second.
const AGEING: Ageing = Ageing {
    weight: 864_000,
    max_seconds: 86_400,
};

#[test]
fn a_job_whose_node_is_taken_gets_the_priority_that_a_copy_of_it_would_have() {
    let mut manager = manager();
    manager.set_ageing(Some(AGEING));
    let mut scene = Scene::grown(&mut manager);
    let mut own = job(9, "short", "c2");
    // Its user has lowered its priority by 50; it has aged since second 1.
    own.nice = 50;
    scene.jobs.push(own);
    scene.instances.remove(1);
    assert_eq!(said(&scene.look(&mut manager, 21)), ["down c2"]);
    scene.set(node("c2", BaseState::Down, &["CLOUD", "NOT_RESPONDING"]));
    let job = scene.jobs.last_mut().unwrap();
    (job.state, job.nodes, job.eligible_ms) = (JobState::Pending, Vec::new(), 150_000);
    // So Slurm has it now: it would age anew.
    job.accrue_ms = 31_000;
    let heard = said(&scene.look(&mut manager, 21 + 10));
    // 30 seconds, ten points each, and one more to be before others of that age.
    assert_eq!(heard, ["power down c2", "nice -251 9", "start 9"]);
    // Without effect it is asked for again, as it was.
    let job = scene.jobs.last_mut().unwrap();
    job.eligible_ms = 31_000;
    assert_eq!(said(&scene.look(&mut manager, 33)), [""; 0]);
    assert!(said(&scene.look(&mut manager, 37)).contains(&"nice -251 9".to_owned()));
    // Slurm has it; what its user does then is left alone.
    scene.jobs.last_mut().unwrap().nice = -251;
    scene.look(&mut manager, 45);
    scene.jobs.last_mut().unwrap().nice = 1_000;
    let later = said(&scene.look(&mut manager, 60));
    assert!(
        !later.iter().any(|one| one.starts_with("nice")),
        "{later:?}"
    );
}

#[test]
fn a_job_whose_instance_never_comes_keeps_its_place() {
    let mut manager = manager();
    manager.set_ageing(Some(AGEING));
    let mut scene = Scene::busy();
    scene.look(&mut manager, 0);
    // Slurm gave the job a node that its instance has not joined yet.
    let waiting = scene.jobs.len();
    scene.jobs.push(job(9, "short", "c3"));
    scene.jobs[waiting].state = JobState::Configuring;
    scene.look(&mut manager, 11);
    // The node has not come up within ResumeTimeout: Slurm itself put the job back.
    let job = &mut scene.jobs[waiting];
    (job.state, job.nodes, job.eligible_ms) = (JobState::Pending, Vec::new(), 150_000);
    job.accrue_ms = 21_000;
    let heard = said(&scene.look(&mut manager, 21));
    assert!(heard.contains(&"nice -201 9".to_owned()), "{heard:?}");
    assert!(heard.contains(&"start 9".to_owned()), "{heard:?}");
}

#[test]
fn a_job_whose_next_launch_fails_keeps_its_place_once_more() {
    let mut manager = manager();
    manager.set_ageing(Some(AGEING));
    let mut scene = Scene::grown(&mut manager);
    scene.jobs.push(job(9, "short", "c2"));
    scene.instances.remove(1);
    scene.look(&mut manager, 21);
    let own = scene.jobs.len() - 1;
    let job = &mut scene.jobs[own];
    (job.state, job.nodes, job.accrue_ms) = (JobState::Pending, Vec::new(), 22_000);
    assert!(said(&scene.look(&mut manager, 31)).contains(&"nice -301 9".to_owned()));
    // Slurm launches it on a node that stays, and the launch fails.
    let job = &mut scene.jobs[own];
    (job.state, job.nodes) = (JobState::Running, vec!["n1".to_owned()]);
    (job.nice, job.start_ms) = (-301, 40_000);
    scene.look(&mut manager, 41);
    let job = &mut scene.jobs[own];
    (job.state, job.nodes, job.accrue_ms) = (JobState::Pending, Vec::new(), 42_000);
    (job.launch_failed, job.restarts) = (true, 2);
    assert!(said(&scene.look(&mut manager, 42)).contains(&"release 9".to_owned()));
    // Released, it is as old as before its first loss.
    scene.jobs[own].launch_failed = false;
    let heard = said(&scene.look(&mut manager, 51));
    assert!(heard.contains(&"nice -501 9".to_owned()), "{heard:?}");
}

#[test]
fn where_priorities_do_not_age_slurm_keeps_the_place_itself() {
    let mut manager = manager();
    let mut scene = Scene::grown(&mut manager);
    scene.jobs.push(job(9, "short", "c2"));
    scene.instances.remove(1);
    scene.look(&mut manager, 21);
    let job = scene.jobs.last_mut().unwrap();
    (job.state, job.nodes, job.eligible_ms) = (JobState::Pending, Vec::new(), 150_000);
    let heard = said(&scene.look(&mut manager, 22));
    assert!(heard.contains(&"start 9".to_owned()), "{heard:?}");
    assert!(
        !heard.iter().any(|one| one.starts_with("nice")),
        "{heard:?}"
    );
}
