//! Plugins and cost modules that operators change while several schedulers run.

use super::Bench;
use crate::Tasks;
use crate::configure;
use crate::plugins::{self, NovaServicePlugins};
use ebbtide_harness::eventually;
use ebbtide_live_plugins::{PluginChange, PluginControl, PluginUser as _};
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::CloudSettings;
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_plugins::PluginConfig;
use tokio_util::sync::CancellationToken;

/// What nova.conf says of cost modules.
const CONFIGURED: &str = "partial_hour";
/// Another one that is built in.
const CHOSEN: &str = "newest_first";
/// No service listens there.
const NOWHERE: &str = "http://127.0.0.1:9";

/// A nova.conf; `database`: with one for changes.
fn conf(bench: &Bench, database: bool) -> NovaConf {
    let file = bench.file("plugins.conf");
    let mut text = "[DEFAULT]\nhost = controller\nmy_ip = 127.0.0.1\n[ebbtide]\n".to_owned();
    if database {
        let ledger = bench.file("ledger.sqlite");
        text.push_str(&format!("connection = sqlite://{}\n", ledger.display()));
    }
    std::fs::write(&file, text).unwrap();
    crate::read_conf(&[file], &[]).unwrap()
}

/// The plugins of one more scheduler of the cloud, which follows changes until it is dropped.
struct OneMore {
    plugins: NovaServicePlugins,
    tasks: Tasks,
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.tasks.stop().cancel();
    }
}

impl OneMore {
    async fn start(bench: &Bench, conf: &NovaConf) -> Self {
        let facts = super::facts(&bench.nova, &bench.placement, Options::default()).await;
        let own = |_| facts.clone();
        let settings = CloudSettings::default();
        let (plugins, _) = plugins::load(conf, Options::default(), settings, own).unwrap();
        let tasks = Tasks::new(CancellationToken::new());
        let ledger = configure::ledger_database(conf).unwrap();
        plugins::follow(&plugins, ledger, &tasks).await.unwrap();
        Self { plugins, tasks }
    }

    fn cost_module(&self) -> String {
        self.plugins.user().cost_module()
    }

    async fn comes_to(&self, cost_module: &str) {
        let there = async || {
            let present = self.cost_module();
            (present == cost_module).then_some(()).ok_or(present)
        };
        eventually(super::LONG, there).await;
    }
}

#[tokio::test]
async fn a_cost_module_that_is_chosen_decides_at_all_schedulers_and_after_a_restart() {
    let bench = Bench::of_hosts(1).await;
    let conf = conf(&bench, true);
    let (one, two) = (
        OneMore::start(&bench, &conf).await,
        OneMore::start(&bench, &conf).await,
    );
    assert_eq!(one.cost_module(), CONFIGURED);
    let used = one.plugins.use_cost_module(Some(CHOSEN)).await.unwrap();
    assert_eq!(
        (used.as_str(), one.cost_module().as_str()),
        (CHOSEN, CHOSEN)
    );
    two.comes_to(CHOSEN).await;
    // Before its first request, and not a second later.
    let third = OneMore::start(&bench, &conf).await;
    assert_eq!(third.cost_module(), CHOSEN);
    let back = two.plugins.use_cost_module(None).await.unwrap();
    assert_eq!(back, CONFIGURED);
    one.comes_to(CONFIGURED).await;
}

#[tokio::test]
async fn a_change_that_cannot_be_used_is_refused_and_nothing_changes() {
    let bench = Bench::of_hosts(1).await;
    let conf = conf(&bench, true);
    let one = OneMore::start(&bench, &conf).await;
    let away = PluginConfig::at("far", NOWHERE);
    let in_shadow = PluginConfig {
        shadow: true,
        ..away.clone()
    };
    let multiplier = PluginChange {
        multiplier: Some(2.0),
        ..PluginChange::default()
    };
    let codes = [
        one.plugins.add(away, None, false).await.unwrap_err().code(),
        one.plugins
            .add(in_shadow, None, false)
            .await
            .unwrap_err()
            .code(),
        one.plugins.remove("far").await.unwrap_err().code(),
        one.plugins
            .change("RAMWeigher", multiplier)
            .await
            .unwrap_err()
            .code(),
        one.plugins
            .use_cost_module(Some("far"))
            .await
            .unwrap_err()
            .code(),
    ];
    assert_eq!(
        codes,
        [
            "EB-PLUGIN-005",
            "EB-PLUGIN-005",
            "EB-PLUGIN-006",
            "EB-PLUGIN-006",
            "EB-PLUGIN-010"
        ]
    );
    assert_eq!(one.plugins.listed().len(), 0);
    assert_eq!(one.cost_module(), CONFIGURED);
}

#[tokio::test]
async fn without_a_database_changes_are_refused_with_the_next_step() {
    let bench = Bench::of_hosts(1).await;
    let conf = conf(&bench, false);
    let one = OneMore::start(&bench, &conf).await;
    let refused = one.plugins.use_cost_module(Some(CHOSEN)).await.unwrap_err();
    assert_eq!(refused.code(), "EB-PLUGIN-011");
    assert!(
        refused.to_string().contains("[ebbtide] connection"),
        "{refused}"
    );
    assert_eq!(one.cost_module(), CONFIGURED);
}
