//! What each weigher prefers, in words.

/// What a weigher is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Meaning {
    pub(crate) name: &'static str,
    /// Nova's class; empty for ours.
    pub(crate) class: &'static str,
    /// Which hosts a positive multiplier prefers.
    pub(crate) positive: &'static str,
    /// Which hosts a negative one prefers.
    pub(crate) negative: &'static str,
    /// The sign that its name suggests; 0 where both are as good.
    pub(crate) usual: f64,
    /// How it stands to the others.
    pub(crate) layer: Layer,
    /// Free amounts, of which less is packing.
    pub(crate) packs: bool,
    /// Nothing is known of it in a region of ours: all hosts are alike.
    pub(crate) nova_only: bool,
}

/// Groups of weighers, each of which is meant to outweigh those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Nova's everyday weighers, each of which should influence the result.
    Ordinary,
    /// The cost of an eviction.
    Cost,
    /// Whether the host needs victims.
    Preemption,
    /// Broken hosts and forbidden cells.
    Emergency,
}

impl Layer {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Cost => "cost",
            Self::Preemption => "preemption",
            Self::Emergency => "emergency",
        }
    }
}

const fn ordinary(
    name: &'static str,
    class: &'static str,
    positive: &'static str,
    negative: &'static str,
    usual: f64,
) -> Meaning {
    Meaning {
        name,
        class,
        positive,
        negative,
        usual,
        layer: Layer::Ordinary,
        packs: false,
        nova_only: false,
    }
}

impl Meaning {
    const fn packs(mut self) -> Self {
        self.packs = true;
        self
    }

    const fn nova_only(mut self) -> Self {
        self.nova_only = true;
        self
    }

    const fn layer(mut self, layer: Layer) -> Self {
        self.layer = layer;
        self
    }

    /// Which hosts it prefers with this multiplier.
    pub(crate) fn prefers(&self, multiplier: f64) -> &'static str {
        if multiplier > 0.0 {
            self.positive
        } else {
            self.negative
        }
    }

    /// True if the multiplier turns it against its name.
    pub(crate) fn is_inverted(&self, multiplier: f64) -> bool {
        self.usual * multiplier < 0.0
    }
}

/// All built-in weighers.
pub(crate) const MEANINGS: [Meaning; 18] = [
    ordinary(
        "interruption_risk",
        "",
        "for preemptible requests, hosts where normal ones can claim less room, and calmer zones",
        "for preemptible requests, hosts where they are interrupted most",
        1.0,
    )
    .layer(Layer::Cost),
    ordinary(
        "soft_affinity",
        "ServerGroupSoftAffinityWeigher",
        "hosts with more members of the server's soft-affinity group",
        "hosts with fewer members of the server's soft-affinity group: it keeps apart what asked to be together",
        1.0,
    ),
    ordinary(
        "soft_anti_affinity",
        "ServerGroupSoftAntiAffinityWeigher",
        "hosts with fewer members of the server's soft-anti-affinity group",
        "hosts with more members of the server's soft-anti-affinity group: it gathers what asked to be apart",
        1.0,
    ),
    ordinary(
        "build_failure",
        "BuildFailureWeigher",
        "hosts with fewer failed builds",
        "hosts with more failed builds: broken hosts attract servers",
        1.0,
    )
    .layer(Layer::Emergency)
    .nova_only(),
    ordinary("cpu", "CPUWeigher", "hosts with more free CPUs (spreads)", "hosts with fewer free CPUs (packs)", 1.0).packs(),
    ordinary(
        "cross_cell_move",
        "CrossCellWeigher",
        "the cell in which a server is that moves",
        "other cells for a server that moves",
        1.0,
    )
    .layer(Layer::Emergency)
    .nova_only(),
    ordinary("disk", "DiskWeigher", "hosts with more free disk (spreads)", "hosts with less free disk (packs)", 1.0).packs(),
    ordinary("hypervisor_version", "HypervisorVersionWeigher", "newer hypervisors", "older hypervisors", 0.0).nova_only(),
    ordinary(
        "image_props",
        "ImagePropertiesWeigher",
        "hosts with servers of like images (gathers)",
        "hosts without servers of like images (spreads)",
        0.0,
    )
    .nova_only(),
    ordinary(
        "io_ops",
        "IoOpsWeigher",
        "hosts that are busy building, resizing or moving servers",
        "hosts with fewer servers being built, resized or moved",
        -1.0,
    ),
    ordinary("metrics", "MetricsWeigher", "hosts with a larger sum of metrics × ratio", "hosts with a smaller sum of metrics × ratio", 0.0).nova_only(),
    ordinary("num_instances", "NumInstancesWeigher", "hosts with more servers (packs)", "hosts with fewer servers (spreads)", 0.0),
    ordinary(
        "pci",
        "PCIWeigher",
        "hosts with fewer free PCI devices, so that devices stay for those who need them",
        "hosts with more free PCI devices, for every request",
        1.0,
    )
    .nova_only(),
    ordinary("ram", "RAMWeigher", "hosts with more free memory (spreads)", "hosts with less free memory (packs)", 1.0).packs(),
    ordinary(
        "preemption_needed",
        "",
        "hosts with free capacity, without evictions",
        "hosts that have to evict: servers are evicted although there is free capacity",
        1.0,
    )
    .layer(Layer::Preemption),
    ordinary(
        "eviction_cost",
        "",
        "hosts where making room costs less",
        "hosts where making room costs most",
        1.0,
    )
    .layer(Layer::Cost),
    ordinary(
        "partial_hour_sum",
        "",
        "hosts whose preemptible servers have used less of their billing period, those that would stay included",
        "hosts whose preemptible servers have used more of their billing period",
        1.0,
    )
    .layer(Layer::Cost),
    ordinary(
        "preemptible_count",
        "",
        "hosts with fewer preemptible servers",
        "hosts with more preemptible servers",
        1.0,
    )
    .layer(Layer::Cost),
];

/// What a weigher is about, by our name or Nova's class; `None` for those of others.
pub(crate) fn meaning(name: &str) -> Option<&'static Meaning> {
    let plain = name.replace('-', "_");
    let called = |meaning: &&Meaning| {
        meaning.name == plain || (!meaning.class.is_empty() && meaning.class == name)
    };
    MEANINGS.iter().find(called)
}

/// A number without needless zeros.
pub(crate) fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::Resources;
    use ebbtide_weigher_api::{Column, Details, HostBatch, RequestDetails, RequestView};

    #[test]
    fn every_built_in_weigher_has_its_words_and_no_other() {
        let mut ours: Vec<&str> = MEANINGS.iter().map(|meaning| meaning.name).collect();
        let mut built_in = ebbtide_weighers::names();
        ours.sort_unstable();
        built_in.sort_unstable();
        assert_eq!(ours, built_in);
        for class in ebbtide_nova::weighing::classes() {
            assert!(meaning(class).is_some(), "{class}");
        }
    }

    #[test]
    fn the_sign_that_a_name_suggests_is_that_of_the_default() {
        for weigher in ebbtide_weighers::all() {
            let meaning = meaning(weigher.name()).unwrap();
            let default = weigher.default_multiplier();
            assert!(
                default == 0.0 || meaning.usual == 0.0 || meaning.usual == default.signum(),
                "{}",
                weigher.name()
            );
        }
    }

    /// Whether the weigher's raw number, times its sign, rises with its first column, as the engine
    /// would ask it.
    fn rises(name: &str) -> Option<bool> {
        let weigher = ebbtide_weighers::all()
            .into_iter()
            .find(|weigher| weigher.name() == name)?;
        let column = *weigher.needs().first()?;
        let mut columns: [Vec<f64>; Column::COUNT] = std::array::from_fn(|_| vec![0.0, 0.0]);
        columns[column.index()] = vec![0.0, 1.0];
        let resources = Resources::new();
        let policy = match name {
            "soft_affinity" => Some(ebbtide_model::GroupPolicy::SoftAffinity),
            "soft_anti_affinity" => Some(ebbtide_model::GroupPolicy::SoftAntiAffinity),
            _ => None,
        };
        let request = RequestView {
            project_id: "p",
            resources: &resources,
            preemptible: false,
            group_policy: policy,
            details: RequestDetails::default(),
        };
        let batch = HostBatch {
            len: 2,
            columns: &columns,
            preemptibles: None,
            details: Details::default(),
        };
        let mut out = vec![0.0; 2];
        weigher.weigh(&request, &batch, &mut out).ok()?;
        let [less, more] = [out[0], out[1]];
        (less != more).then_some((more > less) == (weigher.multiplier_sign() > 0.0))
    }

    /// The words hang on the arithmetic: what is said of a positive multiplier is what the weigher
    /// does with one.
    #[test]
    fn the_words_say_which_way_a_weigher_pulls() {
        for (name, more_is_preferred) in [
            ("soft_affinity", true),
            ("soft_anti_affinity", false),
            ("build_failure", false),
            ("cpu", true),
            ("cross_cell_move", true),
            ("disk", true),
            ("hypervisor_version", true),
            ("io_ops", true),
            ("num_instances", true),
            ("pci", false),
            ("ram", true),
            ("preemption_needed", false),
            ("eviction_cost", false),
            ("preemptible_count", false),
        ] {
            assert_eq!(rises(name), Some(more_is_preferred), "{name}");
            let words = meaning(name).unwrap().positive;
            let fewer = ["fewer", "less", "without evictions"]
                .iter()
                .any(|word| words.contains(word));
            assert_eq!(!fewer, more_is_preferred, "{name}: {words}");
        }
    }
}
