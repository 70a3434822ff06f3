//! Lifetime models that the engine uses, read from the files that `ebbtide-lab model fit` writes.

use crate::ConfigError;
use ebbtide_engine::EngineConfig;
use ebbtide_lifetime::life_tables::tables;
use ebbtide_model::LifeTables;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest file of models, in bytes: a thousand groups with their points take a tenth of it.
const LONGEST: u64 = 64 << 20;

/// Reads the models that the engine's configuration names into it.
///
/// # Errors
/// [`ConfigError::Wrong`] for a file that cannot be read, [`ConfigError::Model`] for one that has
/// no model in it; both name key and file.
pub fn read_models(engine: &mut EngineConfig) -> Result<(), ConfigError> {
    let read = |key, path: Option<&Path>| path.map(|path| read_model(key, path)).transpose();
    engine.lifetimes = read("lifetime_model", engine.lifetime_model.as_deref())?;
    engine.interruptions = read("interruption_model", engine.interruption_model.as_deref())?;
    Ok(())
}

/// Reads the models that `engine.{key}` names.
///
/// # Errors
/// As [`read_models`].
pub fn read_model(key: &'static str, path: &Path) -> Result<LifeTables, ConfigError> {
    let wrong = |problem: String| ConfigError::Wrong(format!("engine.{key} = {path:?}: {problem}"));
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut start = file.take(LONGEST + 1);
    start
        .read_to_string(&mut text)
        .map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("it is longer than {LONGEST} bytes")));
    }
    tables(&text).map_err(|source| ConfigError::Model {
        key,
        path: path.to_path_buf(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use std::io::Write;
    use std::path::Path;
    use tempfile::NamedTempFile;

    fn file(text: &str) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn read(text: &str) -> Result<Config, crate::ConfigError> {
        Config::parse(Path::new("f"), text, std::iter::empty(), &[])
    }

    const MODEL: &str = r#"{"model": "uniform", "maximum_hours": 24}"#;

    #[test]
    fn a_model_of_the_configuration_is_read_with_it() {
        let model = file(MODEL);
        let text = format!(
            "[engine]\ncost_module = \"remaining_lifetime\"\nlifetime_model = {:?}\n",
            model.path()
        );
        let config = read(&text).unwrap();
        let tables = config.engine.lifetimes.clone().unwrap();
        assert!((tables.find("any", "where").remaining(0.0, None) - 43_200.0).abs() < 10.0);
        assert!(config.engine.interruptions.is_none());
        assert!(ebbtide_engine::Engine::new(config.engine).is_ok());
    }

    #[test]
    fn a_module_without_its_model_is_refused_with_the_key_of_the_model() {
        for (text, key) in [
            (
                "cost_module = \"remaining_lifetime\"",
                "engine.lifetime_model",
            ),
            (
                "weighers = [{ name = \"interruption-risk\" }]",
                "engine.interruption_model",
            ),
        ] {
            let error = read(&format!("[engine]\n{text}\n"))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(key) && error.contains("ebbtide-lab model fit"),
                "{error}"
            );
        }
    }

    #[test]
    fn files_that_are_no_models_are_refused_with_key_and_file() {
        let hours = r#"{"groups": [{"group": "all", "model": "uniform", "maximum_hours": 24}, {"group": "hour=08", "labels": {"hour": "08"}, "model": "uniform", "maximum_hours": 24}]}"#;
        let unfitted = r#"{"groups": [{"group": "all", "error": {"code": "EB-LIFETIME-004", "message": "too few"}}]}"#;
        for (text, code, said) in [
            ("", "EB-LIFETIME-010", "ebbtide-lab model fit"),
            (
                "lifetime_hours,ended\n3,preempted\n",
                "EB-LIFETIME-010",
                "ebbtide-lab model fit",
            ),
            (hours, "EB-LIFETIME-010", "by hour"),
            (unfitted, "EB-LIFETIME-010", "no model for everybody"),
            (
                r#"{"model": "weibull", "parameters": {"lambda": -1, "k": 1}}"#,
                "EB-LIFETIME-001",
                "lambda",
            ),
        ] {
            let model = file(text);
            let key = "interruption_model";
            let error = read(&format!("[engine]\n{key} = {:?}\n", model.path())).unwrap_err();
            assert_eq!(error.code(), "EB-SERVICE-004", "{error}");
            let words = error.to_string();
            assert!(
                words.contains("engine.interruption_model = ")
                    && words.contains(said)
                    && words.contains(code),
                "{words}"
            );
        }
        let error = read("[engine]\nlifetime_model = \"/nowhere/model.json\"\n").unwrap_err();
        assert_eq!(error.code(), "EB-SERVICE-004");
        assert!(error.to_string().contains("/nowhere/model.json"), "{error}");
    }
}
