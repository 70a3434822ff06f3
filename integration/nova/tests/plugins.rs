//! The operator's weighers behind Nova's own: both ways of deciding ask them, with what Nova knows
//! of its hosts.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.

use ebbtide_nova::filters::FilterPlugins;
use ebbtide_nova::hosts::new_state;
use ebbtide_nova::model::{Aggregate, Flavor, HostState, Options, RequestSpec};
use ebbtide_nova::table::CloudTable;
use ebbtide_nova::weighing::{Plugins, weigh};
use ebbtide_weigher_api::{
    Column, Fact, FactColumn, FilterError, FilterFailure, FilterVerdicts, HostBatch, HostFilter,
    RequestView, Weigher, WeigherError,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Better by what an aggregate says under `power`, and by free CPUs.
struct Power {
    facts: Vec<Fact>,
}

impl Weigher for Power {
    fn name(&self) -> &str {
        "power"
    }

    fn multiplier_key(&self) -> &str {
        "power_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::FreeVcpus]
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        if request.details.flavor == "broken" {
            return Err(WeigherError::Other("not that flavor".to_owned()));
        }
        assert_eq!(request.resources.amount("VCPU"), 2);
        assert!(request.preemptible);
        assert_eq!(
            request.details.extra_specs,
            [("ebbtide:preemptible", "true")]
        );
        let free = hosts.column(Column::FreeVcpus)?;
        let numbers = |fact: &Fact| -> Result<Vec<f64>, WeigherError> {
            match hosts.fact(fact)? {
                FactColumn::Numbers(numbers) => Ok(numbers.clone()),
                FactColumn::Texts(texts) => Ok((0..hosts.len)
                    .map(|host| texts.get(host).len() as f64)
                    .collect()),
            }
        };
        let each: Result<Vec<Vec<f64>>, WeigherError> = self.facts.iter().map(numbers).collect();
        let each = each?;
        for (at, out) in out.iter_mut().enumerate() {
            *out = free[at] + each.iter().map(|column| column[at]).sum::<f64>();
        }
        Ok(())
    }
}

fn host(name: &str, vcpus: i64, metadata: &[(&str, &str)]) -> HostState {
    let metadata: BTreeMap<String, String> = metadata
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let aggregate = Aggregate {
        id: 1,
        uuid: String::new(),
        name: "rack".to_owned(),
        hosts: vec![name.to_owned()],
        metadata,
    };
    HostState {
        free_ram_mb: Some(1000),
        total_usable_ram_mb: 2000,
        vcpus_total: vcpus,
        cpu_allocation_ratio: Some(1.0),
        ram_allocation_ratio: Some(1.0),
        disk_allocation_ratio: Some(1.0),
        aggregates: vec![Arc::new(aggregate)],
        ..new_state(name, name, "cell")
    }
}

fn options(facts: &[&str]) -> Options {
    let facts = facts.iter().map(|fact| fact.parse().unwrap()).collect();
    let power: Arc<dyn Weigher> = Arc::new(Power { facts });
    Options::default().with_plugins(Plugins::new(vec![(power, 10.0)]))
}

fn spec(flavor: &str) -> RequestSpec {
    let mut specs = ebbtide_nova::model::OrderedMap::default();
    specs.insert("ebbtide:preemptible", "true".to_owned());
    RequestSpec {
        flavor: Flavor {
            name: flavor.to_owned(),
            vcpus: 2,
            memory_mb: 100,
            extra_specs: Some(specs),
            ..Flavor::default()
        },
        ..RequestSpec::default()
    }
}

#[test]
fn a_plugin_adds_up_behind_novas_weighers_and_reads_what_nova_knows() {
    let a = host("a", 4, &[("power", "2"), ("power_weight_multiplier", "5")]);
    let b = host("b", 4, &[("power", "100.5")]);
    let options = options(&[
        "number:power",
        "has:power",
        "total:VCPU",
        "allocation_ratio:VCPU",
    ]);
    let weighed = weigh(&[&a, &b], &spec("m1"), &options).unwrap();
    let part = weighed.parts.last().unwrap();
    assert_eq!(part.class, "power");
    assert_eq!(
        part.raw,
        [4.0 + 2.0 + 1.0 + 4.0 + 1.0, 4.0 + 100.5 + 1.0 + 4.0 + 1.0]
    );
    assert_eq!(part.norm, [0.0, 1.0]);
    // An aggregate's multiplier counts more than the configured one.
    assert_eq!(part.mult, [5.0, 10.0]);
    assert_eq!(weighed.order, [1, 0]);
}

#[test]
fn a_plugin_that_fails_and_is_not_forgiven_fails_the_request_with_its_name() {
    let (a, b) = (host("a", 4, &[]), host("b", 4, &[]));
    let fault = weigh(&[&a, &b], &spec("broken"), &options(&[])).unwrap_err();
    assert_eq!(fault.weigher, Some("power"));
    assert!(fault.fault.message.contains("not that flavor"), "{fault:?}");
}

#[test]
fn weighers_that_are_taken_into_use_later_count_as_those_from_the_start() {
    let hosts = || {
        vec![
            host("a", 4, &[("power", "1")]),
            host("b", 4, &[("power", "9")]),
        ]
    };
    let with = |sign: f64| {
        let facts = vec!["number:power".parse().unwrap()];
        let power: Arc<dyn Weigher> = Arc::new(Power { facts });
        Plugins::new(vec![(power, sign * 10.0)])
    };
    let mut plain = Options::default();
    plain.enabled_filters.clear();
    let mut cloud = CloudTable::new(hosts(), plain.clone(), 0);
    for sign in [1.0, -1.0, 1.0] {
        cloud.set_plugins(with(sign));
        let from_the_start = CloudTable::new(hosts(), plain.clone().with_plugins(with(sign)), 0);
        let decided = cloud.decide(&spec("m1"), 2).unwrap();
        assert_eq!(decided, from_the_start.decide(&spec("m1"), 2).unwrap());
        assert_eq!(decided, cloud.reference(&spec("m1"), 2).unwrap());
        assert_eq!(decided.best[0].0, usize::from(sign > 0.0));
    }
    cloud.set_plugins(Plugins::default());
    assert_eq!(cloud.options().weighers, plain.weighers);
}

/// Refuses hosts whose aggregates say `loud`, and cannot judge for the flavor `broken`.
struct Loud(Vec<Fact>);

impl HostFilter for Loud {
    fn name(&self) -> &str {
        "loud"
    }

    fn needs(&self) -> &[Column] {
        &[]
    }

    fn facts(&self) -> &[Fact] {
        &self.0
    }

    fn filter(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError> {
        if request.details.flavor == "broken" {
            return Err(FilterError::Other("not that flavor".to_owned()));
        }
        assert_eq!(
            request.details.scheduler_hints,
            [("reservation", r#"["pool-1"]"#.to_owned())]
        );
        let FactColumn::Numbers(loud) = hosts.fact(&self.0[0])? else {
            return Err(FilterError::Other("not numbers".to_owned()));
        };
        let mut verdicts = FilterVerdicts::pass(hosts.len);
        for (at, loud) in loud.iter().enumerate() {
            if *loud > 0.0 {
                verdicts.refuse(at, "it is loud");
            }
        }
        Ok(verdicts)
    }
}

#[test]
fn both_ways_of_deciding_ask_the_operators_filters_behind_novas_own() {
    let hosts = || {
        vec![
            host("a", 4, &[]),
            host("b", 8, &[("loud", "1")]),
            host("c", 2, &[]),
        ]
    };
    let loud: Arc<dyn HostFilter> = Arc::new(Loud(vec!["has:loud".parse().unwrap()]));
    let decide = |failure, flavor: &str| {
        let filters = FilterPlugins::new(vec![(Arc::clone(&loud), failure)]);
        let options = Options {
            enabled_filters: vec!["AllHostsFilter".to_owned()],
            ..Options::default()
        };
        let options = options.with_filter_plugins(filters);
        let cloud = CloudTable::new(hosts(), options, 0);
        let mut spec = spec(flavor);
        spec.scheduler_hints = Some(BTreeMap::from([
            ("reservation".to_owned(), vec!["pool-1".to_owned()]),
            ("_nova_check_type".to_owned(), vec!["move".to_owned()]),
        ]));
        let fast = cloud.decide(&spec, 9).unwrap();
        assert_eq!(fast, cloud.reference(&spec, 9).unwrap());
        fast.best.iter().map(|(at, _)| *at).collect::<Vec<usize>>()
    };
    assert_eq!(decide(FilterFailure::Pass, "m1"), [0, 2]);
    assert_eq!(decide(FilterFailure::Pass, "broken"), [1, 0, 2]);
    assert!(decide(FilterFailure::Refuse, "broken").is_empty());
}
