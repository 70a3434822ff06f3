//! The paper's figures as numbers: `plan reuse --figure`, `plan checkpoint --figure`, `simulate
//! batch`.

use super::{REFIT, ebbtide};
use serde_json::Value;

fn rows(json: &Value) -> Vec<Value> {
    json["rows"].as_array().unwrap().clone()
}

async fn line(words: &str) -> crate::run::Ran {
    let words: Vec<&str> = words.split_whitespace().collect();
    ebbtide(&words).await
}

#[tokio::test]
async fn figures_4_to_8_are_json_with_a_row_for_each_hour() {
    for (command, figure, first, count) in [
        ("plan reuse --job 6h --figure 4", "4", "job_hours", 23),
        ("plan reuse --job 6h --figure 5", "5", "age_hours", 24),
        (
            "plan checkpoint --job 4h --mttf 1h --figure 8a",
            "8a",
            "age_hours",
            24,
        ),
        (
            "plan checkpoint --job 9h --mttf 1h --figure 8b",
            "8b",
            "job_hours",
            9,
        ),
    ] {
        let ran = line(&format!("{command} --model {REFIT} -o json")).await;
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
        let json = ran.json();
        assert_eq!(json["figure"], figure);
        let rows = rows(&json);
        assert_eq!(rows.len(), count, "{command}");
        let steps = rows.windows(2).map(|pair| {
            let at = |row: &Value| row[first].as_f64().unwrap();
            at(&pair[1]) - at(&pair[0])
        });
        assert!(steps.into_iter().all(|step| step == 1.0), "{command}");
    }
    let by_age = format!("plan checkpoint --job 4h --mttf 1h --figure 8a --model {REFIT} -o json");
    let json = line(&by_age).await.json();
    // Beyond 20 h the paper's equations have no plan for four hours.
    assert_eq!(rows(&json)[20]["paper"], Value::Null);
    assert_eq!(json["mean"]["paper"], Value::Null);
    assert!(json["mean"]["young_daly"].as_f64() > json["mean"]["corrected"].as_f64());
}

#[tokio::test]
async fn figure_7_needs_the_wrong_model_and_compares_with_it() {
    let refused = line(&format!("plan reuse --job 6h --figure 7 --model {REFIT}")).await;
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("--wrong"), "{}", refused.err);
    let short = "bathtub:A=0.3,tau1=0.5,tau2=0.5,b=5,max=5";
    let ran = line(&format!(
        "plan reuse --job 1h --figure 7 --model {short} --wrong {REFIT} -o json"
    ))
    .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let rows = rows(&ran.json());
    assert_eq!(rows.len(), 4);
    let share = |row: &Value, key: &str| row[key].as_f64().unwrap();
    for row in &rows {
        assert!(share(row, "by_model") <= share(row, "always_kept"), "{row}");
        assert!(share(row, "by_wrong_model") <= 1.0, "{row}");
    }
    // Without a figure the age has to be known.
    let refused = line(&format!("plan reuse --job 6h --model {REFIT}")).await;
    assert!(refused.err.contains("--age"), "{}", refused.err);
}

#[tokio::test]
async fn the_batch_service_costs_less_than_on_demand_and_says_how_much() {
    let prices = "--on-demand 1.1344 --preemptible 0.24";
    let command = format!("simulate batch --job 14m --per-job 2 --runs 5 --model {REFIT}");
    let ran = line(&format!("{command} {prices} -o json")).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(&json["overhead"]) > 0.0);
    let (discount, cost) = (&json["cost"]["price_ratio"], &json["cost"]["cost_ratio"]);
    let paid = number(&json["paid_hours_on_demand"]) / number(&json["paid_hours"]);
    assert!((number(cost) - number(discount) * paid).abs() < 1e-9);
    let bags = json["by_preemptions"].as_array().unwrap().iter();
    assert_eq!(bags.map(|row| number(&row["bags"])).sum::<f64>(), 5.0);
    // The same seed is the same table.
    let table = line(&format!("{command} {prices}")).await;
    assert!(table.out.contains("| cost ratio"), "{}", table.out);
    assert_eq!(line(&format!("{command} {prices}")).await.out, table.out);
    for (options, says) in [
        ("--job 14m --per-job 33", "EB-LIFETIME-006"),
        ("--job 30h", "EB-LIFETIME-006"),
        ("--job 14m --on-demand 1", "--preemptible"),
        ("--job 14m --on-demand 1 --preemptible 0", "--preemptible 0"),
    ] {
        let ran = line(&format!("simulate batch --model {REFIT} {options}")).await;
        assert_ne!(ran.code, 0, "{options}");
        assert!(ran.err.contains(says), "{options}: {}", ran.err);
    }
}
