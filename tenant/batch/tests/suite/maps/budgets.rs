//! Budgets of bags by maps, and of the service that runs them.

use super::world::{BEGUN, TICK};
use super::{MARGIN, NODES, Service, document, of_bag, outages, settings};
use ebbtide_batch::{WorkId, WorkState};
use proptest::prelude::*;
use serde_json::json;

/// A bag of six tasks whose budget is enough for its plan only if nothing hibernates.
fn bag_with_a_budget(service: &mut Service) -> (WorkId, u64) {
    let mut bag = document(300, MARGIN, &[30; 6]);
    let plan = service.check(&bag).unwrap().book.bag.unwrap().work.plan;
    bag["budget"] = json!(ebbtide_model::Money::from_micros(plan.price.quiet()).to_string());
    (service.submit(&bag), plan.price.quiet())
}

#[test]
fn a_bag_within_its_budget_is_done_and_spends_no_more_than_that() {
    let mut service = Service::new(settings(NODES));
    let (id, budget) = bag_with_a_budget(&mut service);
    service.until_over(&[], &[]);
    assert!(service.is_met(id));
    let spent = service.controller.book().works[&id].spent(service.world.now);
    assert!((1..=budget).contains(&spent), "{spent} of {budget}");
    assert_eq!(service.problems, [""; 0]);
}

#[test]
fn a_bag_whose_budget_is_too_small_for_the_next_task_ends_what_runs_and_goes_on_with_more() {
    let mut service = Service::new(settings(NODES));
    let (id, budget) = bag_with_a_budget(&mut service);
    // Less than a task costs more than two of them: those that run end, and no other begins.
    let enough = 3 * budget / 8;
    let lowered = service
        .controller
        .set_budget(BEGUN, id, Some(enough))
        .unwrap();
    service.book.push(lowered);
    (0..400).for_each(|_| service.step(false));
    assert!(service.world.servers().is_empty(), "{:#?}", service.world);
    let state = service.controller.state(service.world.now, id).unwrap();
    assert_eq!(state.as_str(), "over-budget");
    assert_eq!(service.problems, ["EB-BATCH-006"]);
    let done = service.world.done(id).len();
    let spent = service.controller.book().works[&id].spent(service.world.now);
    assert!(
        (1..6).contains(&done) && spent <= enough,
        "{done} {spent} {enough}"
    );
    let now = service.world.now;
    let raised = service.controller.set_budget(now, id, None).unwrap();
    service.book.push(raised);
    (0..400).for_each(|_| service.step(false));
    assert_eq!(service.world.done(id).len(), 6);
}

#[test]
fn a_bag_that_has_spent_its_budget_is_stopped_at_once() {
    let mut service = Service::new(settings(NODES));
    let id = service.submit(&document(300, MARGIN, &[30; 4]));
    (0..40).for_each(|_| service.step(false));
    let now = service.world.now;
    let spent = service.controller.book().works[&id].spent(now);
    assert!(spent > 0);
    let lowered = service.controller.set_budget(now, id, Some(spent)).unwrap();
    service.book.push(lowered);
    (0..40).for_each(|_| service.step(false));
    assert!(service.world.servers().is_empty(), "{:#?}", service.world);
    assert_eq!(service.problems, ["EB-BATCH-006"]);
}

#[test]
fn a_budget_that_is_used_up_gives_all_servers_back_and_the_bag_goes_on_when_there_is_some() {
    let mut service = Service::new(settings(NODES));
    let id = service.submit(&document(300, MARGIN, &[30; 4]));
    (0..40).for_each(|_| service.step(false));
    assert!(!service.world.servers().is_empty());
    service.world.broke = true;
    (0..40).for_each(|_| service.step(false));
    assert!(service.world.servers().is_empty(), "{:#?}", service.world);
    service.world.broke = false;
    service.until_over(&[], &[]);
    assert_eq!(service.world.done(id).len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_bag_never_spends_more_than_its_budget_and_leaves_no_server_behind(
        lengths in prop::collection::vec(5u64..60, 1..7),
        part in 0.0f64..1.0,
        lost in outages(),
        longer in 0u8..=100,
    ) {
        let mut service = Service::new(settings(NODES));
        service.world.longer = longer;
        let bag = document(400, MARGIN, &lengths);
        let price = service.check(&bag).unwrap().book.bag.unwrap().work.plan.price;
        let id = service.submit(&bag);
        let budget = (price.quiet() as f64 * part) as u64;
        let set = service.controller.set_budget(BEGUN, id, Some(budget)).unwrap();
        service.book.push(set);
        let all = of_bag(service.bag(id), 400, &lost);
        for _ in 0..2_000 {
            service.step(false);
            service.world.outages(&all);
        }
        let now = service.world.now;
        let spent = service.controller.book().works[&id].spent(now);
        // All cores of all servers for the looks that pass until a job is ended: a core costs half
        // of 0.30 an hour at most.
        let late = 2 * NODES as u64 * 150_000 * 3 * TICK as u64 / 3_600_000;
        prop_assert!(spent <= budget + late, "{} of {}", spent, budget);
        prop_assert!(service.world.servers().is_empty(), "{:#?}", service.world);
        // With no limit it goes on to its end.
        let state = service.controller.state(now, id).unwrap();
        if state == WorkState::OverBudget {
            prop_assert_eq!(&service.problems[..1], ["EB-BATCH-006"]);
            let set = service.controller.set_budget(now, id, None).unwrap();
            service.book.push(set);
            (0..2_000).for_each(|_| service.step(false));
        }
        prop_assert_eq!(service.world.done(id).len(), lengths.len());
    }
}
