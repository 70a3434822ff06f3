//! The operator's filters behind Nova's own: on h_f where hosts have room, on h_n where victims may
//! leave.

use crate::kit::{
    COST_MODULE, NOW, cloud_of, host_name, instance, plugins, put_in_shadow, request, settle,
};
use ebbtide_model::DecisionSide;
use ebbtide_nova::filters::FilterPlugins;
use ebbtide_nova::model::Options;
use ebbtide_nova::weighing::Plugins;
use ebbtide_nova_cloud::{
    ClaimResult, Cloud, CloudSettings, DecisionPlugins, NoPlanReason, PlanOptions,
    SchedulingAction, SchedulingRecord,
};
use ebbtide_weigher_api::{
    Column, FilterError, FilterFailure, FilterVerdicts, HostBatch, HostFilter, RequestView,
};
use std::sync::Arc;

/// Refuses hosts with more than so many instances; fails where that is below 0.
struct Few(f64);

impl HostFilter for Few {
    fn name(&self) -> &str {
        "few"
    }

    fn needs(&self) -> &[Column] {
        &[Column::NumInstances]
    }

    fn filter(
        &self,
        _: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError> {
        if self.0 < 0.0 {
            return Ok(FilterVerdicts::pass(hosts.len / 2));
        }
        let mut verdicts = FilterVerdicts::pass(hosts.len);
        for (at, count) in hosts.column(Column::NumInstances)?.iter().enumerate() {
            if *count > self.0 {
                verdicts.refuse(at, &format!("it has {count} instances"));
            }
        }
        Ok(verdicts)
    }
}

fn few(most: f64, failure: FilterFailure) -> DecisionPlugins {
    let filter: Arc<dyn HostFilter> = Arc::new(Few(most));
    DecisionPlugins {
        filters: FilterPlugins::new(vec![(filter, failure)]),
        ..plugins(Plugins::default(), COST_MODULE)
    }
}

/// Host 0 is full of one normal server, hosts 1 and 2 of preemptible ones, the cheaper on host 1.
fn full() -> Cloud {
    let mut cloud = cloud_of(&[4, 4, 4], Options::default(), CloudSettings::default());
    settle(&mut cloud, instance(1, 0, 4, 50, false));
    settle(&mut cloud, instance(2, 1, 4, 61, true));
    settle(&mut cloud, instance(3, 2, 4, 110, true));
    cloud
}

fn stats(cloud: &mut Cloud, host: u128, instances: &str) {
    let mut facts = crate::kit::compute(host, 4);
    let stats = facts.row.stats.as_mut().unwrap();
    stats.insert("num_instances".to_owned(), Some(instances.to_owned()));
    cloud.put_compute(facts).unwrap();
}

fn decided(cloud: &Cloud) -> SchedulingRecord {
    let (mut spec, call) = request(2, 1);
    let asked = cloud.ask(&mut spec).unwrap();
    let candidates = cloud.candidates(&asked).unwrap();
    let mut scheduling = cloud.decide(spec, call, &candidates, NOW, None).unwrap();
    while let SchedulingAction::Claim(_) = scheduling.next() {
        scheduling.claimed(ClaimResult::Taken);
    }
    scheduling.into_record()
}

#[test]
fn a_filter_is_counted_behind_novas_own_with_its_reasons() {
    let mut cloud = cloud_of(&[16, 4], Options::default(), CloudSettings::default());
    stats(&mut cloud, 0, "3");
    cloud
        .set_plugins(few(1.0, FilterFailure::Pass), None)
        .unwrap();
    let record = decided(&cloud);
    assert_eq!(record.placed(), 1);
    let explained = &record.explain(&mut Vec::new())[0];
    assert_eq!(explained.ranking[0].host, host_name(1));
    let step = explained.filters.last().unwrap();
    assert_eq!(
        (step.filter.as_str(), step.before, step.after),
        ("few", 2, 1)
    );
    assert_eq!(step.dropped[0].host, host_name(0));
    assert_eq!(step.dropped[0].reason, "it has 3 instances");
    stats(&mut cloud, 1, "2");
    let (counts, _) = decided(&cloud).dropped();
    let few = counts.last().unwrap();
    assert_eq!((few.filter.as_str(), few.dropped), ("few", 2));
}

#[test]
fn a_filter_that_answers_for_half_of_the_hosts_follows_its_policy() {
    let mut cloud = cloud_of(&[16, 4], Options::default(), CloudSettings::default());
    cloud
        .set_plugins(few(-1.0, FilterFailure::Pass), None)
        .unwrap();
    let record = decided(&cloud);
    assert_eq!(record.placed(), 1);
    let mut warnings = Vec::new();
    let _ = record.explain(&mut warnings);
    assert_eq!(
        warnings,
        [
            "EB-ENGINE-008: filter few was ignored, every host passes: it failed: gave 1 answers for \
          2 hosts"
        ]
    );
    cloud
        .set_plugins(few(-1.0, FilterFailure::Refuse), None)
        .unwrap();
    let record = decided(&cloud);
    assert_eq!(record.placed(), 0);
    let explained = &record.explain(&mut Vec::new())[0];
    let dropped = &explained.filters.last().unwrap().dropped;
    assert_eq!(dropped.len(), 2);
    let reason = &dropped[0].reason;
    assert!(
        reason.starts_with("EB-ENGINE-008: filter few refuses every host"),
        "{reason}"
    );
}

#[test]
fn a_plan_asks_filters_about_h_n_and_solves_no_host_that_they_refuse() {
    let mut cloud = full();
    // As the compute nodes report them: the preemptible server of each, and a normal one on host 1
    // that Placement does not know.
    stats(&mut cloud, 1, "2");
    stats(&mut cloud, 2, "1");
    let plan = |cloud: &Cloud| {
        let (mut spec, call) = request(4, 1);
        let asked = cloud.ask(&mut spec).unwrap();
        cloud.plan(&spec, &call, &asked, NOW, &PlanOptions::default())
    };
    assert_eq!(plan(&cloud).unwrap().instances[0].host.host, host_name(1));
    cloud
        .set_plugins(few(0.0, FilterFailure::Pass), None)
        .unwrap();
    let found = plan(&cloud).unwrap();
    assert_eq!(found.instances[0].host.host, host_name(2));
    let told = &found.explanation.instances[0];
    assert_eq!(told.filters[0].filter, "few");
    assert_eq!((told.filters[0].before, told.filters[0].after), (2, 1));
    assert_eq!(told.filters[0].dropped[0].reason, "it has 1 instances");
    assert!(
        told.ranking
            .iter()
            .all(|ranked| ranked.host != host_name(1))
    );

    stats(&mut cloud, 2, "3");
    let none = plan(&cloud).unwrap_err();
    assert_eq!(none.reason, NoPlanReason::Filtered);
    assert!(
        none.text.contains("few: 2 to 0, host1: it has 1 instances"),
        "{}",
        none.text
    );
}

#[test]
fn a_filter_in_shadow_refuses_in_the_comparison_only() {
    let mut cloud = cloud_of(&[16, 4], Options::default(), CloudSettings::default());
    stats(&mut cloud, 0, "3");
    put_in_shadow(&mut cloud, Some(few(1.0, FilterFailure::Pass))).unwrap();
    let choice = decided(&cloud).in_shadow().unwrap();
    let on = |host| DecisionSide {
        hosts: vec![host_name(host)],
        ..DecisionSide::default()
    };
    assert_eq!((choice.decided, choice.shadow), (on(0), Ok(on(1))));
}
