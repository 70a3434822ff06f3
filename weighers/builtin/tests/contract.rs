//! What holds for every built-in weigher, and for the multipliers together.

use crate::support;

use ebbtide_model::{GroupPolicy, Resources};
use ebbtide_weigher_api::{
    Column, Details, HostBatch, PreemptibleRows, RequestDetails, RequestView, WeigherError,
};
use ebbtide_weighers::{WeigherOptions, all, by_name, names, nova_default, preemption_default};
use proptest::prelude::*;
use std::collections::BTreeSet;
use support::{Hosts, named};

#[test]
fn names_are_unique_and_keys_follow_from_them() {
    let names = names();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for weigher in all() {
        assert_eq!(
            weigher.multiplier_key(),
            format!("{}_weight_multiplier", weigher.name())
        );
        assert!(weigher.default_multiplier().is_finite());
        assert_eq!(named(weigher.name()).name(), weigher.name());
        assert_eq!(
            named(&weigher.name().replace('_', "-")).name(),
            weigher.name()
        );
    }
    for name in nova_default().into_iter().chain(preemption_default()) {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn an_unknown_name_is_refused_with_all_known_ones() {
    let error = by_name("rma", &WeigherOptions::default()).err().unwrap();
    assert_eq!(error.code(), "EB-WEIGHER-001");
    let text = error.to_string();
    assert!(
        text.starts_with("there is no weigher \"rma\"; use one of soft_affinity, "),
        "{text}"
    );
    for name in names() {
        assert!(text.contains(&name), "{text}");
    }
}

#[test]
fn options_are_checked_and_the_message_names_the_key() {
    let read = |text: &str| toml::from_str::<WeigherOptions>(text);
    assert_eq!(read("").unwrap(), WeigherOptions::default());
    assert_eq!(read("period_seconds = 60").unwrap().period_seconds, 60);
    for bad in [
        "period_second = 60",
        "period_seconds = -1",
        "period_seconds = \"1h\"",
    ] {
        assert!(
            read(bad).unwrap_err().to_string().contains("period_second"),
            "{bad}"
        );
    }
    for (period_seconds, fine) in [
        (0, false),
        (1, true),
        (31_622_400, true),
        (31_622_401, false),
    ] {
        let options = WeigherOptions {
            period_seconds,
            ..WeigherOptions::default()
        };
        let result = by_name("partial_hour_sum", &options);
        assert_eq!(result.is_ok(), fine, "{period_seconds}");
        if let Err(error) = result {
            assert_eq!(error.code(), "EB-WEIGHER-002");
            assert!(error.to_string().contains("period_seconds"), "{error}");
        }
    }
}

#[test]
fn the_period_is_that_of_the_options() {
    let hosts = Hosts::new(2).ages(&[vec![3600.0, 3661.5], vec![59.0]]);
    let table = [
        (3600, [-61.5, -59.0]),
        (60, [-1.5, -59.0]),
        (86_400, [-7261.5, -59.0]),
    ];
    for (period_seconds, expected) in table {
        let options = WeigherOptions {
            period_seconds,
            ..WeigherOptions::default()
        };
        let weigher = by_name("partial_hour_sum", &options).unwrap();
        assert_eq!(
            hosts.raw(weigher.as_ref()).unwrap(),
            expected,
            "{period_seconds}"
        );
    }
}

#[test]
fn batches_that_break_the_contract_are_errors_and_not_panics() {
    let resources = Resources::new();
    let request = RequestView {
        project_id: "p",
        resources: &resources,
        preemptible: false,
        group_policy: Some(GroupPolicy::SoftAffinity),
        details: RequestDetails::default(),
    };
    let empty: [Vec<f64>; Column::COUNT] = Default::default();
    let full: [Vec<f64>; Column::COUNT] = std::array::from_fn(|_| vec![0.0; 2]);
    let no_rows = PreemptibleRows {
        offsets: &[0],
        age_seconds: &[],
    };
    let torn_rows = PreemptibleRows {
        offsets: &[0, 7, 9],
        age_seconds: &[1.0],
    };
    for weigher in all() {
        let weigh = |columns, preemptibles, room: usize| {
            let hosts = HostBatch {
                len: 2,
                columns,
                preemptibles,
                details: Details::default(),
            };
            weigher.weigh(&request, &hosts, &mut vec![0.0; room])
        };
        let missing = weigh(&empty, None, 2);
        if weigher.needs().is_empty() && !weigher.needs_preemptibles() {
            assert_eq!(missing, Ok(()), "{}", weigher.name());
        } else if weigher.needs_preemptibles() {
            assert_eq!(missing, Err(WeigherError::MissingPreemptibles));
            for rows in [no_rows, torn_rows] {
                assert!(matches!(
                    weigh(&full, Some(rows), 2),
                    Err(WeigherError::Other(_))
                ));
            }
        } else {
            let first = weigher.needs()[0];
            assert_eq!(missing, Err(WeigherError::MissingColumn(first)));
        }
        let rows = Some(PreemptibleRows {
            offsets: &[0, 0, 0],
            age_seconds: &[],
        });
        assert_eq!(weigh(&full, rows, 2), Ok(()), "{}", weigher.name());
        assert!(
            matches!(weigh(&full, rows, 1), Err(WeigherError::Other(_))),
            "{}",
            weigher.name()
        );
    }
}

#[test]
fn groups_count_under_their_own_policy_only() {
    let members = Hosts::new(3).with(Column::GroupMembers, &[0.0, 1.0, 3.0]);
    for policy in [
        None,
        Some(GroupPolicy::Affinity),
        Some(GroupPolicy::AntiAffinity),
        Some(GroupPolicy::SoftAffinity),
        Some(GroupPolicy::SoftAntiAffinity),
    ] {
        let hosts = members.clone().group(policy);
        let together = hosts.raw(named("soft_affinity").as_ref()).unwrap();
        let apart = hosts.raw(named("soft_anti_affinity").as_ref()).unwrap();
        let is = |wanted| policy == Some(wanted);
        let expected = if is(GroupPolicy::SoftAffinity) {
            [0.0, 1.0, 3.0]
        } else {
            [0.0; 3]
        };
        assert_eq!(together, expected, "{policy:?}");
        let expected = if is(GroupPolicy::SoftAntiAffinity) {
            [0.0, -1.0, -3.0]
        } else {
            [0.0; 3]
        };
        assert_eq!(apart, expected, "{policy:?}");
    }
}

/// Free amounts may be negative, counts may not. A cost is set only if an instance has to leave.
fn any_hosts() -> impl Strategy<Value = (Hosts, Vec<f64>)> {
    let host = (
        prop::array::uniform3(-1e6_f64..1e7),
        prop::array::uniform3(0_u32..60),
        any::<bool>(),
        prop_oneof![Just(0.0), 0.0_f64..1e9],
        prop::collection::vec(0.0_f64..1e7, 0..6),
    );
    let policy = prop_oneof![
        Just(None),
        Just(Some(GroupPolicy::SoftAffinity)),
        Just(Some(GroupPolicy::SoftAntiAffinity))
    ];
    (prop::collection::vec(host, 2..12), policy).prop_map(|(rows, policy)| {
        let column = |f: &dyn Fn(usize) -> f64| (0..rows.len()).map(f).collect::<Vec<f64>>();
        let needed = column(&|i| f64::from(u8::from(rows[i].2)));
        let ages: Vec<Vec<f64>> = rows.iter().map(|row| row.4.clone()).collect();
        let hosts = Hosts::new(rows.len())
            .ages(&ages)
            .with(Column::FreeRamMb, &column(&|i| rows[i].0[0]))
            .with(Column::FreeVcpus, &column(&|i| rows[i].0[1]))
            .with(Column::FreeDiskMb, &column(&|i| rows[i].0[2]))
            .with(Column::NumInstances, &column(&|i| f64::from(rows[i].1[0])))
            .with(Column::NumIoOps, &column(&|i| f64::from(rows[i].1[1])))
            .with(Column::GroupMembers, &column(&|i| f64::from(rows[i].1[2])))
            .with(Column::PreemptionNeeded, &needed)
            .with(
                Column::EvictionCost,
                &column(&|i| if rows[i].2 { rows[i].3 } else { 0.0 }),
            )
            .group(policy);
        (hosts, needed)
    })
}

fn with_defaults(names: &[String]) -> Vec<(&str, Option<f64>)> {
    names.iter().map(|name| (name.as_str(), None)).collect()
}

proptest! {
    #[test]
    fn every_weigher_is_finite_and_normalised_between_0_and_1((hosts, _) in any_hosts()) {
        for weigher in all() {
            for x in hosts.raw(weigher.as_ref()).unwrap() {
                prop_assert!(x.is_finite() && x.to_bits() != (-0.0_f64).to_bits(), "{}: {x}", weigher.name());
            }
            for x in hosts.normalised(weigher.as_ref()) {
                prop_assert!((0.0..=1.0).contains(&x), "{}: {x}", weigher.name());
            }
        }
    }

    #[test]
    fn a_weigher_gives_to_the_last_bit_what_its_form_says(
        (hosts, _) in any_hosts(), policy in prop::sample::select(vec![
            None,
            Some(GroupPolicy::Affinity),
            Some(GroupPolicy::SoftAffinity),
            Some(GroupPolicy::SoftAntiAffinity),
        ])
    ) {
        let hosts = hosts.group(policy);
        let mut known = 0;
        for weigher in all() {
            if let Some(formed) = hosts.formed(weigher.as_ref()) {
                let bits = |numbers: Vec<f64>| numbers.into_iter().map(f64::to_bits).collect::<Vec<_>>();
                prop_assert_eq!(bits(hosts.raw(weigher.as_ref()).unwrap()), bits(formed), "{}", weigher.name());
                known += 1;
            }
        }
        prop_assert!(known >= nova_default().len() + preemption_default().len());
    }

    #[test]
    fn a_host_with_free_capacity_beats_every_host_that_needs_victims((hosts, needed) in any_hosts()) {
        // With every built-in weigher in use at its default multiplier, and 3 in reserve for those
        // of Nova's that are not built in (hypervisor version, PCI, metrics).
        let names = names();
        let totals = hosts.totals(&with_defaults(&names));
        for i in 0..needed.len() {
            for j in 0..needed.len() {
                if needed[i] == 0.0 && needed[j] == 1.0 {
                    prop_assert!(totals[i] > totals[j] + 3.0, "{totals:?} {needed:?}");
                }
            }
        }
    }

    #[test]
    fn totals_without_victims_are_nova_s_to_the_last_bit((hosts, needed) in any_hosts()) {
        let zero = vec![0.0; needed.len()];
        let hosts = hosts.with(Column::PreemptionNeeded, &zero).with(Column::EvictionCost, &zero);
        let nova: Vec<String> = nova_default().iter().map(|&n| n.to_owned()).collect();
        let mut both = nova.clone();
        both.extend(preemption_default().iter().map(|&n| n.to_owned()));
        let bits = |names: &[String]| -> Vec<u64> {
            hosts.totals(&with_defaults(names)).iter().map(|x| x.to_bits()).collect()
        };
        prop_assert_eq!(bits(&nova), bits(&both));
    }

    #[test]
    fn a_cost_difference_of_1_percent_of_the_largest_outweighs_all_of_nova_s((hosts, needed) in any_hosts(), costs in prop::collection::vec(0_u32..=100, 12)) {
        let costs: Vec<f64> = costs[..needed.len()].iter().map(|&c| f64::from(c)).collect();
        let hosts = hosts.with(Column::EvictionCost, &costs);
        let names: Vec<String> =
            nova_default().iter().copied().chain(["eviction_cost"]).map(str::to_owned).collect();
        let totals = hosts.totals(&with_defaults(&names));
        for i in 0..costs.len() {
            for j in 0..costs.len() {
                prop_assert!(costs[i] >= costs[j] || totals[i] > totals[j] + 3.0, "{costs:?} {totals:?}");
            }
        }
    }

    #[test]
    fn the_partial_hour_sum_repeats_with_the_period(ages in prop::collection::vec(0_u32..1_000_000, 1..6), periods in 1_u32..50) {
        let weigher = named("partial_hour_sum");
        let sum = |shift: u32| {
            let ages: Vec<f64> = ages.iter().map(|&a| f64::from(a + shift)).collect();
            Hosts::new(1).ages(&[ages]).raw(weigher.as_ref()).unwrap()
        };
        prop_assert_eq!(sum(0), sum(3600 * periods));
    }
}

/// Rows of the tables of the operator's page that start with `| first`, cell by cell.
fn page_row(first: &str) -> Vec<&'static str> {
    let start = format!("| {first} |");
    let rows: Vec<&str> = include_str!("../../../docs/plugins/weighers.md")
        .lines()
        .filter(|line| line.starts_with(&start))
        .collect();
    assert!(
        !rows.is_empty(),
        "docs/plugins/weighers.md has no row {start}"
    );
    rows[rows.len() - 1]
        .trim_matches('|')
        .split('|')
        .map(str::trim)
        .collect()
}

#[test]
fn the_operator_s_page_lists_every_weigher_with_its_default() {
    for weigher in all() {
        let row = page_row(&format!("`{}`", weigher.name()));
        assert_eq!(
            row[3],
            weigher.default_multiplier().to_string(),
            "{}",
            weigher.name()
        );
    }
}

#[test]
fn the_example_on_the_operator_s_page_is_what_the_code_gives() {
    let hosts = Hosts::new(4)
        .with(Column::FreeVcpus, &[4.0, 0.0, 1.0, 0.0])
        .with(
            Column::FreeDiskMb,
            &[81_920.0, 40_960.0, 40_960.0, 20_480.0],
        )
        .with(Column::NumIoOps, &[2.0, 0.0, 1.0, 0.0])
        .with(Column::FreeRamMb, &[8000.0, 4000.0, 16_000.0, 0.0])
        .with(Column::PreemptionNeeded, &[0.0, 1.0, 1.0, 1.0])
        .with(Column::EvictionCost, &[0.0, 660.0, 1200.0, 1140.0]);
    let names = [
        "cpu",
        "disk",
        "io_ops",
        "ram",
        "preemption_needed",
        "eviction_cost",
    ];
    let all = names.map(|name| (name, None));
    let totals = hosts.totals(&all);
    assert_eq!(support::order(&totals), [0, 1, 3, 2]);
    assert_eq!(support::order(&hosts.totals(&all[..4])), [0, 2, 1, 3]);
    for (host, label) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let row = page_row(label);
        for (name, cell) in names.iter().zip(&row[1..]) {
            let weighted = hosts.totals(&[(*name, None)])[host];
            assert_eq!(cell.parse::<f64>().unwrap(), weighted, "{name} of {label}");
        }
        assert_eq!(row[7], format!("**{}**", totals[host]), "{label}");
    }
}
