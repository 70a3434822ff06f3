//! Odd files, against what Python's oslo.config makes of them (`oslo_config_oracle.py` wrote
//! `vectors.json.gz`).

#![allow(
    clippy::unwrap_used,
    reason = "clippy sees helpers beside the tests as no tests"
)]

use oslo_config::{Config, Opt, OptionType, Scalar, Value};
use serde_json::Value as Json;

const TEXT: Scalar = Scalar::Text {
    choices: &[],
    ignore_case: false,
    quotes: false,
};

fn kind(name: &str) -> OptionType {
    let text = |choices, ignore_case, quotes| Scalar::Text {
        choices,
        ignore_case,
        quotes,
    };
    let int = |min, max| Scalar::Int { min, max };
    let list = |item, bounds| OptionType::List { item, bounds };
    let dict = |value, bounds| OptionType::Dict { value, bounds };
    match name {
        "text" => OptionType::One(TEXT),
        "choice" => OptionType::One(text(&["a", "B"], false, false)),
        "choice_any_case" => OptionType::One(text(&["a", "B"], true, false)),
        "quotes" => OptionType::One(text(&[], false, true)),
        "bool" => OptionType::One(Scalar::Bool),
        "int" => OptionType::One(int(None, None)),
        "int_1_10" => OptionType::One(int(Some(1), Some(10))),
        "float" => OptionType::One(Scalar::Float {
            min: None,
            max: None,
        }),
        "float_0_1" => OptionType::One(Scalar::Float {
            min: Some(0.0),
            max: Some(1.0),
        }),
        "list" => list(TEXT, false),
        "list_int" => list(int(None, None), false),
        "list_bounds" => list(TEXT, true),
        "list_quotes" => list(text(&[], false, true), false),
        "dict" => dict(TEXT, false),
        "dict_int" => dict(int(None, None), false),
        "dict_bounds" => dict(TEXT, true),
        "many" => OptionType::Many(TEXT),
        other => panic!("no kind {other}"),
    }
}

/// Tests may leak: options live as long as the program.
fn forever(text: &Json) -> &'static str {
    text.as_str().unwrap().to_owned().leak()
}

fn option(given: &Json) -> Opt {
    let mut option = Opt::text(forever(&given["group"]), forever(&given["name"]))
        .kind(kind(given["kind"].as_str().unwrap()));
    option.default = match &given["default"] {
        Json::Null => None,
        Json::String(text) => Some(text.clone().leak()),
        Json::Array(items) => {
            let items: Vec<&str> = items.iter().map(|item| item.as_str().unwrap()).collect();
            Some(items.join(",").leak())
        }
        other => Some(other.to_string().leak()),
    };
    let deprecated = given["deprecated"].as_array().unwrap().iter();
    let deprecated: Vec<_> = deprecated
        .map(|pair| (forever(&pair[0]), forever(&pair[1])))
        .collect();
    option.deprecated = deprecated.leak();
    option
}

/// As the oracle writes values: floats as text, for JSON has no NaN.
fn shown(value: Option<Value>) -> Json {
    match value {
        None | Some(Value::Null) => Json::Null,
        Some(Value::Text(text)) => text.into(),
        Some(Value::Bool(value)) => value.into(),
        Some(Value::Int(number)) => number.into(),
        Some(Value::Float(number)) => python(number).into(),
        Some(Value::List(items)) => items.into_iter().map(|item| shown(Some(item))).collect(),
        Some(Value::Dict(entries)) => Json::Object(
            entries
                .into_iter()
                .map(|(key, value)| (key, shown(Some(value))))
                .collect(),
        ),
    }
}

fn python(number: f64) -> String {
    if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else {
        format!("{number:?}")
            .replace("1e-5", "1e-05")
            .replace("1e20", "1e+20")
    }
}

#[test]
fn odd_files_mean_what_they_mean_to_python() {
    let packed = flate2::read::GzDecoder::new(&include_bytes!("vectors.json.gz")[..]);
    let cases: Vec<Json> = serde_json::from_reader(packed).unwrap();
    assert!(cases.len() > 500);
    let mut wrong = Vec::new();
    let mut compared = 0;
    for case in &cases {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &Json| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text.as_str().unwrap()).unwrap();
            path
        };
        let files = case["files"].as_array().unwrap().iter().enumerate();
        let files: Vec<_> = files
            .map(|(n, text)| write(&format!("{n}.conf"), text))
            .collect();
        let mut dirs = Vec::new();
        for (name, text) in case["dir"].as_object().unwrap() {
            write(&format!("d/{name}"), text);
            dirs = vec![folder.path().join("d")];
        }
        let environment = case["env"].as_object().unwrap().iter();
        let environment =
            environment.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
        let name = &case["name"];
        let mut config = match Config::load_with(&files, &dirs, environment) {
            Ok(config) if case["load"] == "ok" => config,
            Err(_) if case["load"] == "error" => continue,
            other => {
                wrong.push(format!("{name}: {} but {other:?}", case["load"]));
                continue;
            }
        };
        let options: Vec<Opt> = case["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(option)
            .collect();
        config.declare(&options);
        for (option, answer) in options.iter().zip(case["answers"].as_array().unwrap()) {
            compared += 1;
            let ours = config.value(option);
            let same = match (&ours, answer.get("value")) {
                (Ok(value), Some(expected)) => shown(value.clone()) == *expected,
                (Err(_), None) => true,
                _ => false,
            };
            if !same {
                wrong.push(format!(
                    "{name}: {}.{}: {ours:?}, but {answer}",
                    option.group, option.name
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(compared > 1300, "{compared}");
}
