//! The published prototype (opie, github.com/indigo-dc/opie at 104d3fd7, Apache-2.0; its test cases
//! restated as data) and the four tables of the paper (López García et al. 2019, tables 3 to 6), as
//! far as they concern weighers.

use crate::support;

use ebbtide_weigher_api::Column;
use support::{Hosts, order};

/// Four hosts with 0, 1, 2 and 3 preemptible instances.
fn counts() -> Hosts {
    Hosts::new(4).ages(&[vec![], vec![60.0], vec![60.0; 2], vec![60.0; 3]])
}

/// Four hosts with one instance each.
fn durations() -> Hosts {
    Hosts::new(4).ages(&[vec![3600.0], vec![3540.0], vec![3480.0], vec![3420.0]])
}

#[test]
fn opie_s_cases_of_counts_and_durations_hold() {
    type Case = (&'static str, Hosts, f64, [usize; 4], f64, f64);
    let table: [Case; 6] = [
        (
            "preemptible_count",
            counts(),
            1000.0,
            [0, 1, 2, 3],
            1000.0,
            0.0,
        ),
        ("preemptible_count", counts(), -1.0, [3, 2, 1, 0], 0.0, -1.0),
        ("preemptible_count", counts(), 2.0, [0, 1, 2, 3], 2.0, 0.0),
        (
            "partial_hour_sum",
            durations(),
            1000.0,
            [0, 3, 2, 1],
            1000.0,
            0.0,
        ),
        (
            "partial_hour_sum",
            durations(),
            -1.0,
            [1, 2, 3, 0],
            0.0,
            -1.0,
        ),
        ("partial_hour_sum", durations(), 2.0, [0, 3, 2, 1], 2.0, 0.0),
    ];
    for (name, hosts, multiplier, expected, first, last) in table {
        let totals = hosts.totals(&[(name, Some(multiplier))]);
        assert_eq!(order(&totals), expected, "{name} × {multiplier}");
        assert_eq!(
            (totals[expected[0]], totals[expected[3]]),
            (first, last),
            "{name} × {multiplier}"
        );
        let off = hosts.totals(&[(name, Some(0.0))]);
        assert!(off.iter().all(|&x| x == 0.0), "{name} × 0");
        let default = hosts.totals(&[(name, None)]);
        assert_eq!(
            default,
            hosts.totals(&[(name, Some(1000.0))]),
            "opie's default is 1000"
        );
    }
}

/// A host of the paper: its name, the minutes that its preemptible instances run, and the cost in
/// minutes of its cheapest sufficient victim set.
type PaperHost = (&'static str, &'static [u32], u32);

struct Table {
    name: &'static str,
    hosts: &'static [PaperHost],
    expected: &'static str,
    /// What the literal Algorithm 4 chooses.
    literal: &'static str,
    /// Total of each host with opie's two weighers at their defaults, from an independent
    /// calculation.
    opie: &'static [f64],
}

/// Hosts whose normal instances leave too little room are left out, as the filters do.
const TABLES: [Table; 4] = [
    Table {
        name: "table 3, same size 1",
        hosts: &[
            ("A", &[96, 207], 27),
            ("B", &[71, 91], 11),
            ("C", &[210, 215], 30),
            ("D", &[85, 199, 152], 19),
        ],
        expected: "B",
        literal: "B",
        opie: &[504.386, 780.702, 478.07, 0.0],
    },
    Table {
        name: "table 4, same size 2",
        hosts: &[
            ("A", &[247, 463, 403, 410], 7),
            ("B", &[344, 476], 44),
            ("C", &[181, 160], 1),
            ("D", &[384, 168, 232], 24),
        ],
        expected: "C",
        literal: "C",
        opie: &[0.0, 800.699, 1213.287, 382.867],
    },
    Table {
        name: "table 5, mixed sizes 1",
        hosts: &[
            ("A", &[298, 278, 190, 187], 55),
            ("B", &[178], 58),
            ("C", &[297, 296, 296], 57),
        ],
        expected: "A",
        literal: "B",
        opie: &[331.361, 1406.805, 250.0],
    },
    Table {
        name: "table 6, mixed sizes 2",
        hosts: &[
            ("A", &[172], 52),
            ("B", &[272, 212, 380], 20),
            ("D", &[232, 213, 324, 314], 24),
        ],
        expected: "B",
        literal: "A",
        opie: &[1327.236, 567.073, 0.0],
    },
];

impl Table {
    fn hosts(&self) -> Hosts {
        let ages: Vec<Vec<f64>> = self
            .hosts
            .iter()
            .map(|(_, minutes, _)| minutes.iter().map(|&m| f64::from(m) * 60.0).collect())
            .collect();
        let costs: Vec<f64> = self.hosts.iter().map(|h| f64::from(h.2) * 60.0).collect();
        Hosts::new(ages.len())
            .ages(&ages)
            .with(Column::EvictionCost, &costs)
            .with(Column::PreemptionNeeded, &vec![1.0; costs.len()])
    }

    fn best(&self, weighers: &[(&str, Option<f64>)]) -> &str {
        self.hosts[order(&self.hosts().totals(weighers))[0]].0
    }
}

#[test]
fn the_eviction_cost_chooses_the_paper_s_host_in_all_four_tables() {
    for table in &TABLES {
        assert_eq!(
            table.best(&[("eviction_cost", None)]),
            table.expected,
            "{}",
            table.name
        );
        let both = [("preemption_needed", None), ("eviction_cost", None)];
        assert_eq!(table.best(&both), table.expected, "{}", table.name);
    }
}

#[test]
fn the_literal_algorithm_4_contradicts_both_tables_with_mixed_sizes() {
    for table in &TABLES {
        assert_eq!(
            table.best(&[("partial_hour_sum", None)]),
            table.literal,
            "{}",
            table.name
        );
    }
    let wrong: Vec<&str> = TABLES
        .iter()
        .filter(|t| t.literal != t.expected)
        .map(|t| t.name)
        .collect();
    assert_eq!(wrong, ["table 5, mixed sizes 1", "table 6, mixed sizes 2"]);
}

#[test]
fn opie_s_two_weighers_together_give_opie_s_totals() {
    for table in &TABLES {
        let totals = table
            .hosts()
            .totals(&[("partial_hour_sum", None), ("preemptible_count", None)]);
        for (total, expected) in totals.iter().zip(table.opie) {
            assert!(
                (total - expected).abs() < 0.000_5,
                "{}: {totals:?}",
                table.name
            );
        }
    }
}
