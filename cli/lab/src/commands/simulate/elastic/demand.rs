//! `ebbtide-lab simulate elastic --demand`: figure 1 of the paper.

use crate::figure_rows::{FigureRows, FigureUnit};
use ebbtide_elastic::{Demand, Trace};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::json::Json;

/// Shows how many tasks would run on a cluster without end.
pub(super) fn show(context: &mut Context, trace: &Trace, window_us: u64) -> Result<(), CliError> {
    let demand = Demand::of(trace, window_us)?;
    let window = window_us as f64 / 3.6e9;
    let rows = demand.windows.iter().enumerate().map(|(at, tasks)| {
        let from = at as f64 * window;
        vec![Some(from), Some(*tasks)]
    });
    let rows = FigureRows {
        figure: "1",
        columns: vec![
            ("from_hours", "From [h]", FigureUnit::Hours),
            ("tasks", "Running tasks", FigureUnit::Count),
        ],
        rows: rows.collect(),
    };
    let ratio = demand.most() / demand.least();
    let words = format!(
        "{} windows of {}: {:.0} tasks in the mean, standard deviation {:.0}, {:.0} to {:.0} ({ratio:.1} times)",
        demand.windows.len(),
        Hours(window),
        demand.mean(),
        demand.deviation(),
        demand.least(),
        demand.most(),
    );
    let facts = vec![
        ("window_hours", Json::from(window)),
        ("mean", Json::from(demand.mean())),
        ("standard_deviation", Json::from(demand.deviation())),
        ("least", Json::from(demand.least())),
        ("most", Json::from(demand.most())),
    ];
    rows.show(context, &words, facts)
}
