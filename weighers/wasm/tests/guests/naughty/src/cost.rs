use super::{Orders, misbehave};

wit_bindgen::generate!({ path: "../../../wit", world: "cost-plugin" });

use exports::ebbtide::plugin::cost_module::{Candidates, Column, Description, Guest, Pair};

struct Naughty;

fn orders(settings: Vec<Pair>) -> Orders {
    Orders(settings.into_iter().map(|pair| (pair.key, pair.value)).collect())
}

impl Guest for Naughty {
    fn describe(settings: Vec<Pair>) -> Result<Description, String> {
        let orders = orders(settings);
        let words = |key: &str| orders.get(key).split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        Ok(Description {
            unit: "blows".to_owned(),
            needs: words("needs"),
            surcharges: words("surcharges").iter().filter_map(|word| word.parse().ok()).collect(),
        })
    }

    fn cost(settings: Vec<Pair>, candidates: Candidates) -> Result<Vec<f64>, String> {
        let orders = orders(settings);
        let rows = candidates.len as usize;
        match orders.get("do") {
            "sum" => Ok((0..rows).map(|row| candidates.columns.iter().map(|column| value(column, row)).sum()).collect()),
            _ => misbehave(&orders, rows),
        }
    }
}

fn value(column: &Column, row: usize) -> f64 {
    match column {
        Column::Numbers(numbers) => numbers[row],
        _ => 0.0,
    }
}

export!(Naughty);
