//! Tests of the engine as a whole. They read as statements; the words are in [`kit`].

mod alike;
mod bad_clouds;
mod bad_input;
mod brute_force;
mod candidate_facts;
mod classes;
mod decisions;
mod eligible_hosts;
mod explanations;
mod filter_plugins;
mod filters;
mod groups;
mod joint;
mod kit;
mod policies;
mod properties;
mod reclaim;
mod remaining_lifetime;
mod retained;
mod same_answer;
mod several;
mod table;
