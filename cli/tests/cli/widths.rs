//! Tables on terminals of all widths: no number and no identifier breaks, and no line is too long.

use crate::fake::{self, Fake, id, usage};
use crate::run::{CapturedOutput, at_width};
use crate::{market, nouns, story};
use ebbtide_shell::layout::width;
use ebbtide_shell::output::{ListingColumn, TableCell};
use ebbtide_shell::table::{TableFormat, drawn};
use std::collections::BTreeSet;

const WIDTHS: [u16; 4] = [60, 80, 120, 200];

/// Words as they stand between blanks and bars.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| c.is_whitespace() || c == '|')
        .collect()
}

/// Holds a table at a width against the same at any width. Every word of it was a word before: what
/// breaks leaves two that were none.
fn holds(whole: &str, fitted: &str, limit: usize) {
    let known = words(whole);
    for word in words(fitted) {
        let rule = !word.is_empty() && word.bytes().all(|b| matches!(b, b'+' | b'-'));
        assert!(
            rule || known.contains(word),
            "{word:?} is a piece of something at {limit} columns:\n{fitted}"
        );
    }
    for line in fitted.lines() {
        // A word that is longer than the terminal cannot be helped.
        let longest = line.split_whitespace().map(width).max().unwrap_or(0);
        assert!(
            width(line) <= limit || longest + 2 > limit,
            "{} of {limit} columns: {line}\n{fitted}",
            width(line)
        );
    }
}

/// Every table that any test of the command prints is drawn at all widths, too.
pub fn fits_everywhere(columns: &[ListingColumn], titles: &[&str], rows: &[Vec<TableCell>]) {
    let at = |limit| drawn(TableFormat::default(), columns, titles, rows, limit, false).text;
    let whole = at(None);
    for limit in WIDTHS.map(usize::from) {
        holds(&whole, &at(Some(limit)), limit);
    }
}

async fn printed(fake: &Fake, line: &str, limit: Option<u16>) -> String {
    let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
    let endpoint = fake.endpoint();
    let mut args = vec!["--endpoint", &endpoint, "--project", "default"];
    args.extend(line.split_whitespace());
    let code = at_width(limit, &args, &out, &err).await;
    assert_eq!(code, 0, "{line}: {}", err.text());
    out.text()
}

#[tokio::test]
async fn what_is_printed_fits_into_the_terminal_and_breaks_no_number_and_no_identifier() {
    let fake = nouns::region().await;
    fake.with(|state| state.decisions.push(story::decision()));
    let explain = format!("explain {}", id(900));
    let with_prices = market::region_with_hours().await;
    for (fake, line) in [
        (&fake, "host list"),
        (&fake, "host show host-A"),
        (&fake, "flavor list"),
        (&fake, "flavor show spot"),
        (&fake, "server list"),
        (&fake, "server list --all-projects --deleted"),
        (&fake, "server show worker-2"),
        (&fake, "evacuation list"),
        (&fake, "evacuation show worker-2"),
        (&fake, "decision list"),
        (&fake, "status"),
        (&fake, "conform papers"),
        (&fake, explain.as_str()),
        (&with_prices, "price list"),
        (&with_prices, "billing hours"),
        (&with_prices, "billing total"),
    ] {
        let whole = printed(fake, line, None).await;
        for limit in WIDTHS {
            let fitted = printed(fake, line, Some(limit)).await;
            assert!(
                !fitted.trim().is_empty(),
                "{line} prints nothing at {limit}"
            );
            if line != "status" {
                holds(&whole, &fitted, limit.into());
            }
            // Bars of the status are as long as there is room for.
            let long = fitted.lines().find(|line| width(line) > limit.into());
            assert_eq!(long, None, "{line} at {limit}");
        }
    }
}

#[tokio::test]
async fn at_80_columns_a_list_keeps_what_tells_its_rows_apart_and_says_what_it_left_out() {
    let fake = nouns::region().await;
    let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
    let endpoint = fake.endpoint();
    let args = [
        "--endpoint",
        &endpoint,
        "--project",
        "default",
        "server",
        "list",
    ];
    assert_eq!(at_width(Some(80), &args, &out, &err).await, 0);
    insta::assert_snapshot!("server_list_at_80", format!("{}{}", out.text(), err.text()));
    // Who asks for a column gets it, on records if need be.
    let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
    let wanted = ["-c", "id", "-c", "state_reason", "-c", "name"];
    let args = [&args[..], &wanted].concat();
    assert_eq!(at_width(Some(60), &args, &out, &err).await, 0);
    assert!(
        out.text().contains(&id(2)) && err.text().is_empty(),
        "{}",
        out.text()
    );
}

#[tokio::test]
async fn a_decision_is_told_host_by_host_where_its_table_is_too_wide() {
    let fake = nouns::region().await;
    fake.with(|state| state.decisions.push(story::decision()));
    let told = printed(&fake, &format!("explain {}", id(900)), Some(60)).await;
    for line in [
        "Host                     host-B",
        "Eviction cost            11",
        "Cheapest victims (cost)  BP1 (11)",
        "ram                      4096 → 0.5 × 1",
        "Eviction cost            not needed",
    ] {
        assert!(told.lines().any(|said| said == line), "{line}: {told}");
    }
}

#[tokio::test]
async fn the_list_of_hosts_in_the_readme_is_what_100_columns_show() {
    let fake = Fake::start().await;
    let host = |name: &str, servers: [u32; 2], cpu: [u64; 2], mem: [u64; 2]| {
        let mut host = fake::host(name, 8, 16_000);
        host.availability_zone = "nova".into();
        [host.normal_servers, host.preemptible_servers] = servers;
        host.resources = vec![
            usage("VCPU", 8, cpu[0], cpu[1], 0),
            usage("MEMORY_MB", 16_000, mem[0], mem[1], 0),
        ];
        host
    };
    fake.with(|state| {
        state.hosts = vec![
            host("host-A", [1, 1], [4, 4], [8000, 8000]),
            host("host-B", [1, 1], [4, 4], [8000, 8000]),
            host("host-C", [0, 3], [0, 7], [0, 14_000]),
            host("host-D", [3, 0], [8, 0], [16_000, 0]),
        ];
    });
    let shown = printed(&fake, "host list", Some(100)).await;
    let readme = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    assert!(
        readme.contains(&shown),
        "README.md does not show this:\n{shown}"
    );
}
