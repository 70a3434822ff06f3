//! Tables of lifetimes, and models as text. What is taken can be fitted or refused, a model that is
//! taken is a distribution, and whatever a scheduler would look up in it is a chance or a time.

use ebbtide_lifetime::description::{Description, pick};
use ebbtide_lifetime::fit::{Curve, kaplan_meier, observed};
use ebbtide_lifetime::labelled_life::{check, groups};
use ebbtide_lifetime::life_tables::tables;
use ebbtide_lifetime::table::Table;
use ebbtide_lifetime::{Lifetime, Observations};

pub(super) fn run(bytes: &[u8]) {
    if let Ok(table) = Table::parse(bytes) {
        table_keeps_its_promises(&table);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(model) = Description::parse(text.trim()).and_then(|description| description.model()) {
        is_a_distribution(model.as_ref());
    }
    if let Ok(entry) = pick(text, None)
        && let Ok(model) = entry.description.model()
    {
        is_a_distribution(model.as_ref());
    }
    if let Ok(tables) = tables(text) {
        for (flavor, zone) in [("", ""), ("m1.small", "nova")] {
            let table = tables.find(flavor, zone);
            for age in [0.0, 1.0, 3600.0, 86_400.0, 1e9, 1e15] {
                assert!((0.0..=1.0).contains(&table.lives_on(age, 3600.0)));
                let left = table.remaining(age, None);
                assert!(left.is_finite() && left >= 0.0, "{left} at {age}");
                assert!((0.0..=60.0).contains(&table.remaining(age, Some(60.0))));
            }
        }
    }
}

fn table_keeps_its_promises(table: &Table) {
    let by = table.rows.first().map(|row| row.labels.keys().cloned());
    let by: Vec<String> = by.into_iter().flatten().take(2).collect();
    if let Ok(found) = groups(&table.rows, &by) {
        let members: usize = found.iter().skip(1).map(|group| group.members.len()).sum();
        assert!(by.is_empty() || members == table.rows.len());
    }
    if check(&table.rows, 24.0).is_err() {
        return;
    }
    let seen = table.rows.iter().map(|row| row.observation);
    let seen = Observations::new(seen, 24.0).expect("checked a moment ago");
    for (_, share) in observed(Curve::KaplanMeier, &seen) {
        assert!((0.0..=1.0 + 1e-9).contains(&share));
    }
    if let Ok(model) = kaplan_meier(&seen) {
        is_a_distribution(&model);
    }
}

/// The distribution function rises from 0 to 1.
fn is_a_distribution(model: &dyn Lifetime) {
    let mut before = 0.0;
    for age in [0.0, 1e-6, 0.5, 1.0, 7.0, 23.9, 24.0, 1e4, 1e9] {
        let share = model.cdf(age);
        assert!((before..=1.0).contains(&share), "{model:?} at {age}");
        before = share;
    }
}
