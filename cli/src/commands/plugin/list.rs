//! `ebbtide plugin list`.

use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::{Tone, number as decimal, optional};

/// Digits of the digest that people compare.
const DIGEST: usize = 12;

pub(super) async fn run(context: &mut Context) -> Result<(), CliError> {
    let mut region = context.region().await?;
    let answer = region.admin.list_plugins(v1::ListPluginsRequest {}).await?;
    let plugins = answer.into_inner().plugins;
    let listing = Listing {
        columns: vec![
            text("name", "Name"),
            text("kind", "Kind"),
            text("carrier", "Carrier").detail(5),
            text("state", "State"),
            number("multiplier", "Multiplier"),
            text("on_failure", "On failure").detail(4),
            number("calls", "Calls").detail(3),
            number("failures", "Failures"),
            number("refused", "Refused hosts").on_request(),
            text("last_failure", "Last failure").detail(1),
            text("digest", "Digest").detail(6),
            text("file", "File").on_request(),
        ],
        rows: plugins.iter().map(row).collect(),
        json: json::list(&plugins),
        none: "no plugins: all weighers, cost modules and filters are built in",
    };
    context.output.listing(listing)
}

fn row(plugin: &v1::Plugin) -> Vec<TableCell> {
    let (state, tone) = match plugin {
        v1::Plugin { enabled: false, .. } => ("disabled", Tone::Plain),
        plugin if !plugin.missing.is_empty() => ("missing", Tone::Bad),
        v1::Plugin { shadow: true, .. } => ("shadow", Tone::Warn),
        v1::Plugin { resting: true, .. } => ("resting", Tone::Bad),
        v1::Plugin { in_use: true, .. } => ("in use", Tone::Good),
        _ => ("not used", Tone::Plain),
    };
    let digest: String = plugin.digest.chars().take(DIGEST).collect();
    vec![
        TableCell::new(&plugin.name),
        TableCell::new(&plugin.kind),
        TableCell::new(&plugin.carrier),
        TableCell::new(state).tone(tone),
        optional(&plugin.multiplier.map(decimal).unwrap_or_default()),
        TableCell::new(&plugin.on_failure),
        TableCell::new(plugin.calls),
        TableCell::new(plugin.failures),
        TableCell::new(match plugin.shadow {
            true => plugin.shadow_refused,
            false => plugin.refused,
        }),
        optional(match plugin.missing.is_empty() {
            true => &plugin.last_failure,
            false => &plugin.missing,
        }),
        optional(&digest).value(&plugin.digest),
        TableCell::new(&plugin.file),
    ]
}
