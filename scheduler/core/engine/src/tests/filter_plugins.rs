//! Filters of the operator's: what they see, what follows from their answers and failures.

use super::kit::*;
use crate::{Engine, EngineConfig, PluginFailure};
use ebbtide_cost_api::{CostError, CostModule, VictimBatch};
use ebbtide_model::Decision;
use ebbtide_model::decision::FilterStep;
use ebbtide_weigher_api::{
    Column, Fact, FactColumn, FilterError, FilterVerdicts, HostBatch, HostFilter, RequestView,
};
use std::sync::{Arc, Mutex};

type Answer = fn(&[String], &HostBatch<'_>, usize) -> Result<FilterVerdicts, FilterError>;

/// A filter that answers by a function of host names, columns and the number of the call.
struct Answers {
    needs: Vec<Column>,
    facts: Vec<Fact>,
    answer: Answer,
    asked: Mutex<Vec<Vec<String>>>,
}

impl Answers {
    fn new(needs: &[Column], answer: Answer) -> Arc<Self> {
        Arc::new(Self {
            needs: needs.to_vec(),
            facts: vec![Fact::HostName, Fact::Used("VCPU".to_owned())],
            answer,
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<Vec<String>> {
        self.asked.lock().unwrap().clone()
    }
}

impl HostFilter for Answers {
    fn name(&self) -> &str {
        "licences"
    }

    fn needs(&self) -> &[Column] {
        &self.needs
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn filter(
        &self,
        _: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError> {
        let FactColumn::Texts(names) = hosts.fact(&Fact::HostName)? else {
            return Err(FilterError::Other("names are texts".to_owned()));
        };
        let names: Vec<String> = (0..hosts.len).map(|at| names.get(at).to_owned()).collect();
        let mut asked = self.asked.lock().unwrap();
        asked.push(names.clone());
        (self.answer)(&names, hosts, asked.len())
    }
}

fn refuses_a(names: &[String], _: &HostBatch<'_>, _: usize) -> Result<FilterVerdicts, FilterError> {
    let mut verdicts = FilterVerdicts::pass(names.len());
    for (at, name) in names.iter().enumerate() {
        if name == "a" {
            verdicts.refuse(at, "no licence is left");
        }
    }
    Ok(verdicts)
}

fn with_filter(filter: &Arc<Answers>, policy: Option<PluginFailure>) -> Engine {
    let filter: Arc<dyn HostFilter> = Arc::clone(filter) as Arc<dyn HostFilter>;
    engine(EngineConfig::default()).with_filters(vec![(filter, policy)])
}

fn step(decision: &Decision) -> &FilterStep {
    let steps = decision.explanation.instances[0].filters.iter();
    steps.rev().find(|step| step.filter == "licences").unwrap()
}

#[test]
fn a_refused_host_is_counted_with_its_reason_and_gets_nothing() {
    let table = cloud(&[("a", 8), ("b", 4)], &[]);
    let engine = with_filter(&Answers::new(&[], refuses_a), None);
    let decision = decide_with(&engine, &table, &wants(1));
    assert_eq!(summary(&decision), [("b", vec![])]);
    let step = step(&decision);
    assert_eq!((step.before, step.after), (2, 1));
    assert_eq!(step.dropped[0].host, "a");
    assert_eq!(step.dropped[0].reason, "no licence is left");
    let none = decide_with(&engine, &cloud(&[("a", 8)], &[]), &wants(1));
    let refusal = refused(&none);
    assert!(
        refusal.reason.contains("1 of 1 by licences"),
        "{}",
        refusal.reason
    );
    let counted = refusal.dropped.last().unwrap();
    assert_eq!((counted.filter.as_str(), counted.dropped), ("licences", 1));
}

/// Remembers on which hosts candidates were priced.
struct Prices(Vec<Fact>, Arc<Mutex<Vec<String>>>);

impl CostModule for Prices {
    fn name(&self) -> &str {
        "prices"
    }

    fn unit(&self) -> &str {
        "pieces"
    }

    fn facts(&self) -> &[Fact] {
        &self.0
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        let FactColumn::Texts(names) = victims.fact(&self.0[0])? else {
            return Err(CostError::Other("names are texts".to_owned()));
        };
        let mut priced = self.1.lock().unwrap();
        priced.extend((0..victims.len).map(|at| names.get(at).to_owned()));
        out.fill(1.0);
        Ok(())
    }
}

#[test]
fn a_host_that_is_refused_on_h_n_is_never_solved() {
    let instances = [
        spot(1, "a", 4, 61),
        spot(2, "b", 4, 119),
        spot(3, "b", 4, 20),
    ];
    let table = cloud(&[("a", 4), ("b", 8)], &instances);
    let priced = Arc::new(Mutex::new(Vec::new()));
    let module: Arc<dyn CostModule> = Arc::new(Prices(vec![Fact::HostName], Arc::clone(&priced)));
    let config = EngineConfig {
        cost_module: "prices".to_owned(),
        ..EngineConfig::default()
    };
    let filter: Arc<dyn HostFilter> = Answers::new(&[], refuses_a);
    for simple in [false, true] {
        let engine = Engine::with_plugins(config.clone(), Vec::new(), vec![Arc::clone(&module)]);
        let engine = engine
            .unwrap()
            .with_filters(vec![(Arc::clone(&filter), None)]);
        let engine = if simple { engine.simple() } else { engine };
        let decision = decide_with(&engine, &table, &wants(4));
        assert_eq!(placed(&decision)[0].host, "b");
        let hosts = std::mem::take(&mut *priced.lock().unwrap());
        assert!(
            hosts.iter().all(|host| host == "b") && !hosts.is_empty(),
            "{hosts:?}"
        );
    }
}

#[test]
fn a_filter_sees_h_n_for_a_normal_request_and_h_f_for_a_preemptible_one() {
    let instances = [normal(1, "a", 1), spot(2, "a", 2, 61), spot(3, "a", 1, 119)];
    let table = cloud(&[("a", 8)], &instances);
    let tell: Answer = |names, hosts, _| {
        let of = |column| Ok::<f64, FilterError>(hosts.column(column)?[0]);
        let FactColumn::Numbers(used) = hosts.fact(&Fact::Used("VCPU".to_owned()))? else {
            return Err(FilterError::Other("used is a number".to_owned()));
        };
        let mut verdicts = FilterVerdicts::pass(names.len());
        let (count, spot) = (of(Column::NumInstances)?, of(Column::NumPreemptible)?);
        let (ram, vcpus) = (of(Column::FreeRamMb)?, of(Column::FreeVcpus)?);
        let said = format!("{count} {spot} {ram} {vcpus} {}", used[0]);
        verdicts.refuse(0, &said);
        Ok(verdicts)
    };
    let needs = [
        Column::NumInstances,
        Column::NumPreemptible,
        Column::FreeRamMb,
        Column::FreeVcpus,
    ];
    let engine = with_filter(&Answers::new(&needs, tell), None);
    let seen = |request| {
        let decision = decide_with(&engine, &table, &request);
        step(&decision).dropped[0].reason.clone()
    };
    assert_eq!(seen(wants(1)), "1 0 7000 7 1");
    assert_eq!(seen(wants(1).preemptible()), "3 2 4000 4 4");
}

#[test]
fn a_filter_that_fails_lets_all_hosts_pass_or_none_and_says_so_with_its_code() {
    let table = cloud(&[("a", 4), ("b", 8)], &[]);
    let bad: [(Answer, &str); 3] = [
        (
            |names, _, _| Ok(FilterVerdicts::pass(names.len() / 2)),
            "gave 1 answers for 2 hosts",
        ),
        (
            |_, hosts, _| {
                hosts.column(Column::NumIoOps)?;
                Ok(FilterVerdicts::pass(hosts.len))
            },
            "NumIoOps was not declared",
        ),
        (
            |_, _, _| {
                Err(FilterError::Other(
                    "used up its 60 units of work".to_owned(),
                ))
            },
            "used up its 60 units of work",
        ),
    ];
    for (answer, problem) in bad {
        let filter = Answers::new(&[], answer);
        let decision = decide_with(&with_filter(&filter, None), &table, &wants(1));
        assert_eq!(summary(&decision), [("b", vec![])]);
        let warning = &decision.explanation.warnings[0];
        assert!(
            warning.starts_with("EB-ENGINE-008: filter licences was ignored, every host passes"),
            "{warning}"
        );
        assert!(warning.contains(problem), "{warning}");
        assert_eq!(filter.asked().len(), 1, "it is not asked again");

        let engine = with_filter(&filter, Some(PluginFailure::Refuse));
        let decision = decide_with(&engine, &table, &wants(1));
        assert!(refused(&decision).reason.contains("2 of 2 by licences"));
        let dropped = &step(&decision).dropped;
        assert_eq!(dropped.len(), 2);
        let reason = &dropped[0].reason;
        assert!(
            reason.starts_with("EB-ENGINE-008: filter licences refuses every host"),
            "{reason}"
        );
        assert!(reason.contains(problem), "{reason}");
    }
}

#[test]
fn the_configuration_has_the_policy_of_a_filter_that_has_none() {
    let table = cloud(&[("a", 4)], &[]);
    let filter: Arc<dyn HostFilter> =
        Answers::new(&[], |_, _, _| Err(FilterError::Other("is ill".to_owned())));
    let config = EngineConfig {
        plugin_failure: PluginFailure::Refuse,
        ..EngineConfig::default()
    };
    let engine = engine(config).with_filters(vec![(filter, None)]);
    assert_eq!(refused(&decide_with(&engine, &table, &wants(1))).hosts, 1);
}

#[test]
fn a_filter_that_changes_its_mind_is_asked_once_about_each_state() {
    // Every second answer refuses all hosts. The joint search and the alternates ask on states that
    // were asked about already, and must not get another answer.
    let moody: Answer = |names, _, call| {
        let mut verdicts = FilterVerdicts::pass(names.len());
        if call % 2 == 0 {
            (0..names.len()).for_each(|at| verdicts.refuse(at, "not today"));
        }
        Ok(verdicts)
    };
    let instances = [spot(1, "a", 4, 61), spot(2, "b", 4, 119)];
    let table = cloud(&[("a", 4), ("b", 4)], &instances);
    let filter = Answers::new(&[], moody);
    let decision = decide_with(&with_filter(&filter, None), &table, &wants(4).times(2));
    assert_eq!(placed(&decision).len(), 2);
    assert_eq!(filter.asked(), [["a", "b"]]);
}

#[test]
fn forced_hosts_skip_filters() {
    let table = cloud(&[("a", 4), ("b", 8)], &[]);
    let filter = Answers::new(&[], refuses_a);
    let mut request = wants(1);
    request.force_hosts = vec!["a".to_owned()];
    let decision = decide_with(&with_filter(&filter, None), &table, &request);
    assert_eq!(summary(&decision), [("a", vec![])]);
    assert!(filter.asked().is_empty());
}
