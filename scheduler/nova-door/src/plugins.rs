//! The operator's weighers and cost modules behind Nova's door: `[ebbtide] plugins` of nova.conf names a file with them. It is read when the scheduler
//! starts.

use crate::error::DoorError;
use crate::task::{Tasks, pause};
use ebbtide_engine::PluginFailure;
use ebbtide_nova::model::Options;
use ebbtide_nova::weighing::Plugins;
use ebbtide_nova_cloud::CloudSettings;
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_plugins::{Alone, Entry, PluginSet, Services, Sources, read_file};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often is tried again to reach a service that was away.
const AGAIN: Duration = Duration::from_secs(15);

/// Puts them behind Nova's own weighers.
pub(crate) fn add(
    conf: &NovaConf,
    options: Options,
    mut cloud: CloudSettings,
    tasks: &Tasks,
) -> Result<(Options, CloudSettings), DoorError> {
    let Some(path) = &conf.ebbtide.plugins else {
        return Ok((options, cloud));
    };
    let configs = read_file(Path::new(path))?;
    let entries: Vec<Entry> = configs.into_iter().map(Entry::from).collect();
    let set = PluginSet::load(
        &entries,
        &PluginSet::default(),
        &Sources::default(),
        Services::MayBeAway,
    )?;
    for plugin in set.plugins() {
        let name = &plugin.config.name;
        match plugin.missing() {
            Some(problem) => tracing::error!(plugin = name, "is missing: {problem}"),
            None => tracing::info!(plugin = name, kind = plugin.kind.as_str(), "is loaded"),
        }
        if plugin.config.shadow {
            tracing::warn!(
                plugin = name,
                "Nova's door decides nothing in shadow: it is left out"
            );
        }
    }
    let alone = set.alone(PluginFailure::Ignore);
    cloud.cost_modules.0.clone_from(&alone.cost_modules);
    let options = options.with_plugins(Plugins::new(alone.weighers.clone()));
    if alone.is_waiting() {
        wait(Arc::new(alone), tasks);
    }
    Ok((options, cloud))
}

/// Looks now and then for those that were away.
fn wait(alone: Arc<Alone>, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    tasks.spawn("plugins", async move {
        while alone.is_waiting() && pause(&stop, AGAIN).await {
            alone.look_again();
        }
    });
}
