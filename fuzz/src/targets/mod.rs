//! Every target: its name, what it reads, and the function.

mod agent_config;
mod availability;
mod bag;
mod batch;
mod bus_message;
mod flavor;
mod grpc_message;
mod hypervisor;
mod job_trace;
mod journal;
mod lifetimes;
mod metadata_request;
mod nova_case;
mod nova_conf;
mod nova_objects;
mod nova_rows;
mod openstack_answer;
mod oslo_messaging;
mod placement_answer;
mod plugin_answer;
mod prices;
mod records;
mod region_call;
mod region_record;
mod rest_body;
mod run_record;
mod scheduler_config;
mod slurm;
mod small_texts;
mod tokens;
mod trace;
mod urls;

/// A function for a fuzzer.
#[derive(Debug, Clone, Copy)]
pub struct FuzzTarget {
    /// The name of its program and of its folders of seeds and regressions.
    pub name: &'static str,
    /// What it is given to read.
    pub reads: &'static str,
    /// Reads it; panics at a finding.
    pub run: fn(&[u8]),
    /// How many changed seeds the test of the workspace gives it: a second's worth or two.
    pub mutations: usize,
}

const fn target(name: &'static str, reads: &'static str, run: fn(&[u8])) -> FuzzTarget {
    FuzzTarget {
        name,
        reads,
        run,
        mutations: 3_000,
    }
}

/// All of them, by name.
pub const TARGETS: &[FuzzTarget] = &[
    target(
        "agent_config",
        "the agent's configuration file",
        agent_config::run,
    ),
    target(
        "availability",
        "traces of availability, and a job with a deadline on each",
        availability::run,
    ),
    target("bag", "bags of tasks, and prices over time", bag::run),
    target(
        "batch",
        "works, the settings and the book of `ebbtide-batch`",
        batch::run,
    ),
    target(
        "bus_message",
        "messages between scheduler and agents",
        bus_message::run,
    ),
    target(
        "flavor",
        "flavors and what their extra specs say",
        flavor::run,
    ),
    target(
        "grpc_message",
        "every request of the API, off the wire",
        grpc_message::run,
    ),
    target(
        "hypervisor",
        "what virsh prints, guest agents answer and guests say",
        hypervisor::run,
    ),
    target(
        "job_trace",
        "traces of short and long jobs, played to the end",
        job_trace::run,
    ),
    target(
        "journal",
        "the agent's journal, the file of the simulated hypervisor",
        journal::run,
    ),
    target(
        "lifetimes",
        "tables of lifetimes, and models as text",
        lifetimes::run,
    ),
    target(
        "metadata_request",
        "HTTP requests of guests: EC2, GCE, Azure, our own",
        metadata_request::run,
    ),
    FuzzTarget {
        mutations: 1_000,
        ..target(
            "nova_case",
            "files of Nova's cases and benchmark inputs, decided to the end",
            nova_case::run,
        )
    },
    target(
        "nova_conf",
        "nova.conf, as oslo.config reads it",
        nova_conf::run,
    ),
    target(
        "nova_objects",
        "Nova's versioned objects in calls, casts, answers and notifications",
        nova_objects::run,
    ),
    target(
        "nova_rows",
        "rows of Nova's databases, with JSON in them",
        nova_rows::run,
    ),
    FuzzTarget {
        mutations: 2_000,
        ..target(
            "openstack_answer",
            "HTTP answers of Keystone, Placement and Nova",
            openstack_answer::run,
        )
    },
    target(
        "oslo_messaging",
        "oslo.messaging's envelopes, requests, replies",
        oslo_messaging::run,
    ),
    target(
        "placement_answer",
        "candidates and summaries of Placement, on the way into the cloud in memory",
        placement_answer::run,
    ),
    target(
        "plugin_answer",
        "what a plugin says of itself",
        plugin_answer::run,
    ),
    target("prices", "price histories of spot markets", prices::run),
    target(
        "records",
        "records of the own database, as JSON",
        records::run,
    ),
    FuzzTarget {
        mutations: 200,
        ..target(
            "region_call",
            "calls of the API to a scheduler that runs",
            region_call::run,
        )
    },
    FuzzTarget {
        mutations: 300,
        ..target("region_record", "a recorded region", region_record::run)
    },
    target(
        "rest_body",
        "JSON bodies of REST, as messages of the contracts",
        rest_body::run,
    ),
    target(
        "run_record",
        "what metadata servers answer to a run, and the record of one",
        run_record::run,
    ),
    target(
        "scheduler_config",
        "the scheduler's configuration: file, environment",
        scheduler_config::run,
    ),
    target(
        "slurm",
        "what Slurm says, lists of hosts, the settings of `ebbtide-batch`, the record of its cluster",
        slurm::run,
    ),
    target(
        "small_texts",
        "the many small texts: times, money, versions, CPU sets, numbers as Python reads them",
        small_texts::run,
    ),
    target("tokens", "tokens and the token file", tokens::run),
    target("trace", "traces, recorded placements", trace::run),
    target(
        "urls",
        "URLs of brokers and databases, ours and OpenStack's",
        urls::run,
    ),
];
