//! What plugins in shadow would have chosen.

use crate::kit::{
    COST_MODULE, NOW, cloud_of, host_name, instance, plugins, put_in_shadow, request, server,
    settle,
};
use ebbtide_model::DecisionSide;
use ebbtide_nova::model::Options;
use ebbtide_nova::weighing::Plugins;
use ebbtide_nova_cloud::{
    ClaimResult, Cloud, CloudSettings, DecisionPlugins, PlanOptions, SchedulingAction,
    SchedulingRecord, ShadowChoice,
};
use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError};
use std::sync::Arc;

/// Prefers hosts with few free VCPUs, and cannot weigh for a request of four.
struct Pack;

impl Weigher for Pack {
    fn name(&self) -> &str {
        "pack"
    }

    fn multiplier_key(&self) -> &str {
        "pack_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::FreeVcpus]
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        if request.resources.amount("VCPU") == 4 {
            return Err(WeigherError::Other("four are too many".to_owned()));
        }
        for (out, free) in out.iter_mut().zip(hosts.column(Column::FreeVcpus)?) {
            *out = -free;
        }
        Ok(())
    }
}

fn pack() -> Option<DecisionPlugins> {
    let pack: Arc<dyn Weigher> = Arc::new(Pack);
    let weighers = Plugins::new(vec![(pack, 1e6)]);
    Some(plugins(weighers, COST_MODULE))
}

fn on(host: u128) -> DecisionSide {
    DecisionSide {
        hosts: vec![host_name(host)],
        ..DecisionSide::default()
    }
}

/// Decides; every claim is taken.
fn decided(cloud: &Cloud, vcpus: i64, many: u128) -> SchedulingRecord {
    let (mut spec, call) = request(vcpus, many);
    let asked = cloud.ask(&mut spec).unwrap();
    let candidates = cloud.candidates(&asked).unwrap();
    let mut scheduling = cloud.decide(spec, call, &candidates, NOW, None).unwrap();
    while let SchedulingAction::Claim(_) = scheduling.next() {
        scheduling.claimed(ClaimResult::Taken);
    }
    scheduling.into_record()
}

#[test]
fn a_weigher_in_shadow_says_what_it_would_have_chosen_and_decides_nothing() {
    let mut cloud = cloud_of(&[4, 16, 8], Options::default(), CloudSettings::default());
    assert_eq!(decided(&cloud, 2, 1).in_shadow(), None);
    put_in_shadow(&mut cloud, pack()).unwrap();
    let record = decided(&cloud, 2, 1);
    let compared = ShadowChoice {
        decided: on(1),
        shadow: Ok(on(0)),
        warnings: Vec::new(),
    };
    assert_eq!(record.in_shadow(), Some(compared));
    assert_eq!(
        record.explain(&mut Vec::new())[0].ranking[0].host,
        host_name(1)
    );
    put_in_shadow(&mut cloud, None).unwrap();
    assert_eq!(decided(&cloud, 2, 1).in_shadow(), None);
}

#[test]
fn a_host_that_the_filters_drop_is_not_chosen_in_shadow_either() {
    let mut cloud = cloud_of(&[4, 16, 8], Options::default(), CloudSettings::default());
    put_in_shadow(&mut cloud, pack()).unwrap();
    let ranking = decided(&cloud, 6, 1).in_shadow().unwrap();
    assert_eq!(ranking.shadow, Ok(on(2)));
    let none = decided(&cloud, 32, 1).in_shadow().unwrap();
    let nowhere = DecisionSide::default();
    assert_eq!(
        (&none.decided, &none.shadow),
        (&nowhere, &Ok(nowhere.clone()))
    );
}

#[test]
fn several_servers_are_not_compared_and_a_failure_is_told() {
    let mut cloud = cloud_of(&[4, 16, 8], Options::default(), CloudSettings::default());
    put_in_shadow(&mut cloud, pack()).unwrap();
    assert_eq!(decided(&cloud, 2, 2).in_shadow(), None);
    let failed = decided(&cloud, 4, 1).in_shadow().unwrap();
    assert!(failed.shadow.is_err(), "{failed:?}");
}

/// Two full hosts: on each a preemptible server, 10 and 50 minutes of an hour old.
fn full() -> Cloud {
    let mut cloud = cloud_of(&[4, 4], Options::default(), CloudSettings::default());
    for (number, minutes) in [(0, 10), (1, 50)] {
        settle(&mut cloud, instance(number, number, 4, minutes, true));
    }
    cloud
}

/// The comparison of a plan, and its victims.
fn planned(cloud: &Cloud, vcpus: i64, compared: bool) -> (Option<ShadowChoice>, Vec<uuid::Uuid>) {
    let (mut spec, call) = request(vcpus, 1);
    let asked = cloud.ask(&mut spec).unwrap();
    let options = PlanOptions {
        compared,
        ..PlanOptions::default()
    };
    let plan = cloud.plan(&spec, &call, &asked, NOW, &options).unwrap();
    let victims = plan.victims.iter().map(|victim| victim.uuid).collect();
    (plan.shadow, victims)
}

#[test]
fn a_cost_module_in_shadow_says_whose_loss_it_prefers_and_evicts_no_server() {
    let mut cloud = full();
    let before = planned(&cloud, 4, true);
    assert_eq!(before, (None, vec![server(0)]), "nothing is in shadow");
    let oldest_first = plugins(Plugins::default(), "oldest_first");
    put_in_shadow(&mut cloud, Some(oldest_first)).unwrap();
    let (choice, victims) = planned(&cloud, 4, true);
    assert_eq!(victims, [server(0)], "the decision is as before");
    let choice = choice.unwrap();
    let shadow = choice.shadow.unwrap();
    assert_eq!(
        (choice.decided.hosts, choice.decided.victims),
        (vec![host_name(0)], 1)
    );
    assert_eq!((&shadow.hosts, shadow.victims), (&vec![host_name(1)], 1));
    // Each side is the cheaper one by its own cost module, and both are priced by both.
    assert!(
        choice.decided.cost < shadow.cost,
        "{:?} {:?}",
        choice.decided.cost,
        shadow.cost
    );
    assert!(shadow.shadow_cost < choice.decided.shadow_cost);
    assert!(choice.decided.cost.is_some() && shadow.shadow_cost.is_some());
    assert_eq!(
        planned(&cloud, 4, false).0,
        None,
        "a what-if is not compared"
    );
}

#[test]
fn where_victims_cost_the_same_weighers_in_shadow_choose_the_host() {
    let mut cloud = cloud_of(&[6, 4], Options::default(), CloudSettings::default());
    for number in [0, 1] {
        settle(&mut cloud, instance(number, number, 4, 10, true));
    }
    put_in_shadow(&mut cloud, pack()).unwrap();
    let choice = planned(&cloud, 3, true).0.unwrap();
    assert_eq!(choice.decided.hosts, [host_name(0)]);
    assert_eq!(choice.shadow.unwrap().hosts, [host_name(1)]);
    let failed = planned(&cloud, 4, true).0.unwrap().shadow;
    assert!(failed.unwrap_err().contains("four are too many"));
}

#[test]
fn a_cost_module_that_is_not_there_is_refused_and_what_was_in_shadow_stays() {
    let mut cloud = full();
    let there = plugins(Plugins::default(), "oldest_first");
    put_in_shadow(&mut cloud, Some(there)).unwrap();
    let missing = plugins(Plugins::default(), "no_such_module");
    let refused = put_in_shadow(&mut cloud, Some(missing)).unwrap_err();
    assert_eq!(refused.code(), "EB-CLOUD-004");
    assert!(planned(&cloud, 4, true).0.is_some());
}
