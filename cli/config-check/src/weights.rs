//! What a list of weighers comes to, and what of it is probably not meant.

use crate::finding::{EffectiveOrder, Finding, Level, Position, WeigherShare, code};
use crate::weigher_text::{Layer, Meaning, meaning, number};

/// One weigher outweighs the others if it is so many times their sum.
const DROWNS: f64 = 10.0;

/// How hosts are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// A region of ours, policy `tiered`.
    Tiered,
    /// A region of ours, policy `nova`.
    Weights,
    /// A region of ours, policy `first-fit`.
    FirstFit,
    /// In place of nova-scheduler.
    NovaScheduler,
}

/// A weigher in use.
#[derive(Debug, Clone)]
pub(crate) struct ActiveWeigher {
    /// Our name, Nova's class, or a plugin's.
    pub(crate) name: String,
    /// Its multiplier; `None` where only a plugin knows.
    pub(crate) multiplier: Option<f64>,
    /// Where that comes from.
    pub(crate) from: &'static str,
    /// The key to blame.
    pub(crate) key: String,
    /// Where it stands.
    pub(crate) at: Option<Position>,
    /// True if the file says the multiplier.
    pub(crate) given: bool,
    /// True if the file names the weigher.
    pub(crate) named: bool,
    /// True if it is a plugin, of which nothing is known here; it may have the name of a built-in
    /// one, whose place it takes.
    pub(crate) plugin: bool,
}

impl ActiveWeigher {
    fn meaning(&self) -> Option<&'static Meaning> {
        meaning(&self.name).filter(|_| !self.plugin)
    }

    fn layer(&self) -> Layer {
        self.meaning()
            .map_or(Layer::Ordinary, |meaning| meaning.layer)
    }

    fn size(&self) -> f64 {
        self.multiplier.unwrap_or(0.0).abs()
    }

    fn finding(&self, level: Level, code: &'static str) -> Finding {
        Finding::new(level, code, self.key.clone()).at(self.at)
    }
}

/// All that can be said of the weighers.
pub(crate) fn findings(order: Order, weighers: &[ActiveWeigher]) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(twice(weighers));
    if order == Order::FirstFit {
        found.extend(not_asked(weighers));
        return found;
    }
    found.extend(inverted(weighers));
    found.extend(zero(order, weighers));
    found.extend(drowning(weighers));
    if order != Order::NovaScheduler {
        found.extend(without_effect(order, weighers));
    }
    if order == Order::Weights {
        found.extend(outvoted(weighers));
    }
    found
}

fn not_asked(weighers: &[ActiveWeigher]) -> Option<Finding> {
    let first = weighers.iter().find(|weigher| weigher.named)?;
    Some(
        Finding::new(Level::Warning, code::NO_EFFECT, "engine.weighers")
            .at(first.at)
            .what("engine.weighers is set, and engine.policy is \"first-fit\"")
            .why("first-fit takes hosts in the order of their registration and asks no weigher")
            .next("remove engine.weighers, or choose the policy tiered or nova"),
    )
}

fn twice(weighers: &[ActiveWeigher]) -> Vec<Finding> {
    let same =
        |a: &ActiveWeigher, b: &ActiveWeigher| a.name.replace('-', "_") == b.name.replace('-', "_");
    let mut found = Vec::new();
    for (position, weigher) in weighers.iter().enumerate() {
        let before: Vec<&ActiveWeigher> = weighers
            .iter()
            .take(position)
            .filter(|known| same(known, weigher))
            .collect();
        if before.is_empty() {
            continue;
        }
        let all = before.iter().copied().chain([weigher]);
        let sum: f64 = all.filter_map(|weigher| weigher.multiplier).sum();
        found.push(
            weigher
                .finding(Level::Warning, code::TWICE)
                .what(format!(
                    "the weigher {} is there {} times",
                    weigher.name,
                    before.len() + 1
                ))
                .why(format!(
                    "each counts, as in Nova: together as one with the multiplier {}",
                    number(sum)
                ))
                .next(format!("keep one, with the multiplier {}", number(sum))),
        );
    }
    found
}

fn inverted(weighers: &[ActiveWeigher]) -> Vec<Finding> {
    // If all weighers of free amounts pack, the operator has chosen packing.
    let free = weighers
        .iter()
        .filter(|weigher| weigher.meaning().is_some_and(|meaning| meaning.packs));
    let all_pack = free
        .clone()
        .all(|weigher| weigher.multiplier.unwrap_or(0.0) <= 0.0);
    let spreads: Vec<&str> = free
        .filter(|weigher| weigher.multiplier.unwrap_or(0.0) > 0.0)
        .map(|weigher| weigher.name.as_str())
        .collect();
    let mut found = Vec::new();
    for weigher in weighers {
        let (Some(meaning), Some(multiplier)) = (weigher.meaning(), weigher.multiplier) else {
            continue;
        };
        if !meaning.is_inverted(multiplier) {
            continue;
        }
        let said = format!(
            "{} = {}: it prefers {}",
            weigher.name,
            number(multiplier),
            meaning.prefers(multiplier)
        );
        let other = number(-multiplier);
        let finding = if meaning.packs && all_pack {
            weigher
                .finding(Level::Note, code::INVERTED)
                .what(said)
                .why("a negative multiplier turns the weigher round; all weighers of free amounts do so here, so packing seems to be meant")
                .next(format!("nothing, if servers are to be packed; {other} spreads them"))
        } else if meaning.packs {
            weigher
                .finding(Level::Warning, code::INVERTED)
                .what(said)
                .why(format!("a negative multiplier turns the weigher round, with {} spreading on: they pull against each other", spreads.join(", ")))
                .next(format!("write {other} to spread; to pack, turn the others round as well"))
        } else {
            weigher
                .finding(Level::Warning, code::INVERTED)
                .what(said)
                .why(format!(
                    "its name suggests the opposite: with {other} it prefers {}",
                    meaning.prefers(-multiplier)
                ))
                .next(format!("write {other}, or leave the multiplier out"))
        };
        found.push(finding);
    }
    found
}

fn zero(order: Order, weighers: &[ActiveWeigher]) -> Vec<Finding> {
    let mut found = Vec::new();
    let off = |weigher: &&ActiveWeigher| weigher.multiplier == Some(0.0);
    if !weighers.is_empty()
        && weighers
            .iter()
            .all(|weigher| weigher.multiplier == Some(0.0))
    {
        let first = &weighers[0];
        found.push(
            first
                .finding(Level::Warning, code::ZERO)
                .what("no weigher counts: all multipliers are 0")
                .why("hosts that passed the filters are all equally good, and the first of them gets every server until it is full")
                .next("give at least one weigher a multiplier, for example ram = 1"),
        );
        return found;
    }
    for weigher in weighers.iter().filter(off) {
        if weigher.given {
            // In nova.conf there is no other way to switch one off.
            let level = if order == Order::NovaScheduler {
                Level::Note
            } else {
                Level::Warning
            };
            found.push(
                weigher
                    .finding(level, code::ZERO)
                    .what(format!("{} has the multiplier 0", weigher.name))
                    .why("it is asked, and what it says does not count")
                    .next(if order == Order::NovaScheduler {
                        "nothing, if it is to be off"
                    } else {
                        "take it out of the list if it is to be off, or give it a multiplier"
                    }),
            );
        } else if weigher.named {
            found.push(
                weigher
                    .finding(Level::Note, code::ZERO)
                    .what(format!(
                        "{} is in the list, and its default multiplier is 0",
                        weigher.name
                    ))
                    .why("naming it does not switch it on")
                    .next(format!("give it a multiplier: {}", directions(weigher))),
            );
        }
    }
    found
}

fn directions(weigher: &ActiveWeigher) -> String {
    weigher.meaning().map_or_else(
        || "for example 1".to_owned(),
        |meaning| {
            format!(
                "a positive one prefers {}, a negative one {}",
                meaning.positive, meaning.negative
            )
        },
    )
}

fn drowning(weighers: &[ActiveWeigher]) -> Option<Finding> {
    let ordinary = || {
        weighers
            .iter()
            .filter(|weigher| weigher.layer() == Layer::Ordinary)
    };
    // What a plugin says of itself is not known here.
    if ordinary().any(|weigher| weigher.multiplier.is_none()) {
        return None;
    }
    let all: f64 = ordinary().map(ActiveWeigher::size).sum();
    let loud = ordinary().find(|weigher| {
        let others = all - weigher.size();
        others > 0.0 && weigher.size() >= DROWNS * others
    })?;
    let others = all - loud.size();
    Some(
        loud.finding(Level::Warning, code::DROWNS)
            .what(format!(
                "{} = {} drowns the others, which together have {}",
                loud.name,
                number(loud.multiplier.unwrap_or_default()),
                number(others)
            ))
            .why(format!(
                "every weigher gives 0 to 1 before its multiplier, whatever its unit: where hosts differ in {} by more than {:.0} % of their \
                 range, nothing else decides",
                loud.name,
                (others / loud.size() * 100.0).ceil()
            ))
            .next(format!("use at most {} if the others are to have a say, or set them to 0 if not", number(others * DROWNS / 2.0))),
    )
}

fn without_effect(order: Order, weighers: &[ActiveWeigher]) -> Vec<Finding> {
    let mut found = Vec::new();
    for weigher in weighers.iter().filter(|weigher| weigher.named) {
        let Some(meaning) = weigher.meaning() else {
            continue;
        };
        if meaning.nova_only {
            found.push(
                weigher
                    .finding(Level::Warning, code::NO_EFFECT)
                    .what(format!("{} decides nothing here", weigher.name))
                    .why("a host of a region says nothing of what it looks at, so all hosts are alike for it; it is there for OpenStack mode")
                    .next("take it out of the list"),
            );
        }
        if order == Order::Tiered
            && weigher.given
            && matches!(meaning.name, "preemption_needed" | "eviction_cost")
        {
            found.push(
                weigher
                    .finding(Level::Note, code::NO_EFFECT)
                    .what(format!("the multiplier of {} has no effect under the policy tiered", weigher.name))
                    .why("tiered itself prefers hosts with room, then the cheaper eviction, exactly; weighers decide only among hosts that are equal in that")
                    .next("leave it out; it counts under the policy nova"),
            );
        }
        if meaning.name == "partial_hour_sum" && weigher.multiplier != Some(0.0) {
            found.push(
                weigher
                    .finding(Level::Warning, code::UNFIT)
                    .what("partial_hour_sum places instances")
                    .why("it counts instances that would stay, and contradicts two of the paper's four tables; it is there for comparison")
                    .next("use eviction_cost with the cost module partial_hour"),
            );
        }
    }
    found
}

fn outvoted(weighers: &[ActiveWeigher]) -> Vec<Finding> {
    let named = |name: &str| {
        weighers.iter().find(|weigher| {
            weigher
                .meaning()
                .is_some_and(|meaning| meaning.name == name)
        })
    };
    let counts = |weigher: Option<&&ActiveWeigher>| {
        weigher.is_some_and(|weigher| weigher.multiplier != Some(0.0))
    };
    let (needed, cost) = (named("preemption_needed"), named("eviction_cost"));
    let mut found = Vec::new();
    let missing: Vec<&str> = [("preemption_needed", needed), ("eviction_cost", cost)]
        .iter()
        .filter(|(_, weigher)| !counts(weigher.as_ref()))
        .map(|(name, _)| *name)
        .collect();
    if !missing.is_empty() {
        let first = weighers.iter().find_map(|weigher| weigher.at);
        let why = if missing.contains(&"preemption_needed") {
            "under the policy nova an eviction counts only through these weighers: servers are evicted for the sake of a little free memory \
             although another host has room"
        } else {
            "what an eviction costs does not count between hosts: the cost module only picks the victims on the host that the others chose"
        };
        found.push(
            Finding::new(Level::Warning, code::EVICTION_IGNORED, "engine.weighers")
                .at(first)
                .what(format!(
                    "the policy is nova, and the weighers lack {}",
                    missing.join(" and ")
                ))
                .why(why)
                .next(format!(
                    "add {}, or use the policy tiered",
                    missing
                        .iter()
                        .map(|name| format!("{{ name = \"{name}\" }}"))
                        .collect::<Vec<_>>()
                        .join(" and ")
                )),
        );
    }
    let below = |most: Layer| -> f64 {
        let counts = |layer: Layer| match most {
            Layer::Preemption => matches!(layer, Layer::Ordinary | Layer::Cost),
            _ => layer == Layer::Ordinary,
        };
        weighers
            .iter()
            .filter(|weigher| counts(weigher.layer()))
            .map(ActiveWeigher::size)
            .sum()
    };
    for (weigher, layer, what) in [
        (
            needed,
            Layer::Preemption,
            "a host that has to evict can win over one with free capacity",
        ),
        (
            cost,
            Layer::Cost,
            "a dear eviction can win over a cheap one",
        ),
    ] {
        let Some(weigher) = weigher else { continue };
        let Some(multiplier) = weigher.multiplier.filter(|multiplier| *multiplier > 0.0) else {
            continue;
        };
        let others = below(layer);
        if others >= multiplier {
            found.push(
                weigher
                    .finding(Level::Warning, code::OUTVOTED)
                    .what(format!(
                        "{} = {} can be outvoted: the weighers below it have {} together",
                        weigher.name,
                        number(multiplier),
                        number(others)
                    ))
                    .why(format!("it is meant to outweigh them; as it is, {what}"))
                    .next(format!(
                        "raise it above {}, or lower the others",
                        number(others)
                    )),
            );
        }
    }
    found
}

/// The weighers in words, in their order.
pub(crate) fn shares(weighers: &[ActiveWeigher]) -> Vec<WeigherShare> {
    let layer = |layer: Layer| -> f64 {
        let of = weighers.iter().filter(|weigher| weigher.layer() == layer);
        of.map(ActiveWeigher::size).sum()
    };
    let layered = weighers
        .iter()
        .any(|weigher| weigher.layer() != Layer::Ordinary && weigher.size() > 0.0);
    let share = |weigher: &ActiveWeigher| {
        let multiplier = weigher.multiplier;
        let says = match (weigher.meaning(), multiplier) {
            (_, Some(0.0)) => "is off: the multiplier is 0".to_owned(),
            (Some(meaning), Some(multiplier)) => format!("prefers {}", meaning.prefers(multiplier)),
            (None, Some(multiplier)) if multiplier > 0.0 => {
                "prefers hosts to which the plugin gives more".to_owned()
            }
            (None, Some(_)) => "prefers hosts to which the plugin gives less".to_owned(),
            (_, None) => "counts as much as the plugin says, if it is a weigher".to_owned(),
        };
        let all = layer(weigher.layer());
        let among = match (weigher.layer(), layered) {
            (Layer::Ordinary, false) => format!(" of {} in all", number(all)),
            (Layer::Ordinary, true) => format!(" of {} among the ordinary ones", number(all)),
            (Layer::Cost, _) => ", meant to outweigh the ordinary ones".to_owned(),
            (Layer::Preemption, _) => {
                ", meant to outweigh the ordinary ones and what an eviction costs".to_owned()
            }
            (Layer::Emergency, _) => ", meant to outweigh everything else".to_owned(),
        };
        let weight = match multiplier {
            Some(multiplier) if multiplier != 0.0 => {
                format!("; weight {}{among}", number(multiplier.abs()))
            }
            _ => String::new(),
        };
        WeigherShare {
            name: weigher.name.clone(),
            multiplier: multiplier.unwrap_or(f64::NAN),
            from: weigher.from,
            layer: weigher.layer().as_str(),
            share: if all > 0.0 { weigher.size() / all } else { 0.0 },
            says: format!("{says}{weight}"),
        }
    };
    weighers.iter().map(share).collect()
}

/// How hosts are ordered, in words.
pub(crate) fn effective(order: Order, cost: &str, weighers: &[ActiveWeigher]) -> EffectiveOrder {
    let lines: &[&str] = match order {
        Order::Tiered => &[
            "1. hosts with free capacity, without evictions",
            "2. then hosts whose room is becoming free",
            "3. then the host where the cheapest sufficient victims cost least, then where they are fewest",
            "4. among equals the host with the largest sum of weights, below",
        ],
        Order::Weights => &["the host with the largest sum of weights, below"],
        Order::FirstFit => &[
            "the first host with room in the order of registration; then the first whose room is becoming free; then the first that can evict enough",
        ],
        Order::NovaScheduler => &[
            "hosts with room, by the largest sum of weights, below; the weights are Nova's",
            "if there is none, a host where the cheapest sufficient victims cost least",
        ],
    };
    let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    lines.push(format!("what a victim costs: {cost}"));
    EffectiveOrder {
        order: lines,
        weighers: if order == Order::FirstFit {
            Vec::new()
        } else {
            shares(weighers)
        },
    }
}
