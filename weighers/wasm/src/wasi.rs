//! The part of WASI 0.2 that the start-up code of the languages requires. Nothing of it has an
//! effect beyond the call.
//!
//! Every interface that a component imports is defined under the name that the component uses.
//! Functions that are not listed here trap when they are called, and the message contains their
//! name; a component that never calls them runs.

use crate::guest::CallStore;
use crate::{Grants, WasmError};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, LinkerInstance, Resource, ResourceType, Val};
use wasmtime::{Engine, StoreContextMut};

/// Standard input: always at its end.
struct Input;
/// Standard output and error: kept, and reported when the call fails.
struct Output;
/// A resource that does not exist here, but that other types refer to.
struct Unavailable;

/// Maximum number of bytes of one write.
const ROOM: u64 = 64 << 10;
/// Maximum number of random bytes of one call.
const MOST_RANDOM: u64 = 1 << 20;

type Done = wasmtime::Result<()>;

/// Defines all that a component imports.
pub(crate) fn define(
    engine: &Engine,
    component: &Component,
    grants: &Grants,
) -> Result<Linker<CallStore>, WasmError> {
    let mut linker = Linker::new(engine);
    let shape = component.component_type();
    for (name, item) in shape.imports(engine) {
        let (interface, version) = name.split_once('@').unwrap_or((name, ""));
        let known = interface.starts_with("wasi:") && version.starts_with("0.2.");
        match item.ty {
            ComponentItem::ComponentInstance(instance) if known => {
                let mut place = linker
                    .instance(name)
                    .map_err(|error| WasmError::Sandbox(error.to_string()))?;
                for (part, item) in instance.exports(engine) {
                    let defined = match item.ty {
                        ComponentItem::ComponentFunc(_) => {
                            function(&mut place, interface, part, grants)
                        }
                        ComponentItem::Resource(_) => {
                            place.resource(part, resource(part), |_, _| Ok(()))
                        }
                        _ => Ok(()),
                    };
                    defined.map_err(|error| WasmError::Sandbox(error.to_string()))?;
                }
            }
            // Types that our own interfaces share come with those.
            ComponentItem::ComponentInstance(_) if interface == "ebbtide:plugin/types" => {}
            _ => return Err(WasmError::Import(name.to_owned())),
        }
    }
    Ok(linker)
}

/// Interfaces name each other's resources, and mean the same.
fn resource(part: &str) -> ResourceType {
    match part {
        "input-stream" => ResourceType::host::<Input>(),
        "output-stream" => ResourceType::host::<Output>(),
        _ => ResourceType::host::<Unavailable>(),
    }
}

fn function(
    place: &mut LinkerInstance<'_, CallStore>,
    interface: &str,
    part: &str,
    grants: &Grants,
) -> Done {
    match (interface, part) {
        ("wasi:cli/environment", "get-environment" | "get-arguments")
        | ("wasi:filesystem/preopens", "get-directories") => {
            gives(place, part, Val::List(Vec::new()))
        }
        ("wasi:cli/environment", "initial-cwd") => gives(place, part, Val::Option(None)),
        (
            "wasi:cli/terminal-stdin" | "wasi:cli/terminal-stdout" | "wasi:cli/terminal-stderr",
            _,
        ) => gives(place, part, Val::Option(None)),
        ("wasi:cli/exit", _) => defines(place, part, |_, _, _| {
            Err(wasmtime::Error::msg("it called exit"))
        }),
        ("wasi:cli/stdin", "get-stdin") => stream::<Input>(place, part),
        ("wasi:cli/stdout", "get-stdout") | ("wasi:cli/stderr", "get-stderr") => {
            stream::<Output>(place, part)
        }
        ("wasi:io/streams", part) => streams(place, interface, part),
        // Only streams can be waited for, and those are always ready.
        ("wasi:io/poll", "[method]pollable.ready") => gives(place, part, Val::Bool(true)),
        ("wasi:io/poll", "[method]pollable.block") => defines(place, part, |_, _, _| Ok(())),
        ("wasi:io/poll", "poll") => poll(place, part),
        ("wasi:random/random" | "wasi:random/insecure" | "wasi:random/insecure-seed", part) => {
            random(place, part)
        }
        ("wasi:clocks/wall-clock" | "wasi:clocks/monotonic-clock", "now" | "resolution")
            if grants.clock.is_some() =>
        {
            clock(place, interface, part)
        }
        ("wasi:clocks/wall-clock" | "wasi:clocks/monotonic-clock", _) => {
            denies(place, interface, part, "the clock is not granted to it")
        }
        _ => denies(place, interface, part, "plugins do not have that"),
    }
}

/// Defines a function. What it is lent goes back when it has answered.
fn defines(
    place: &mut LinkerInstance<'_, CallStore>,
    part: &str,
    work: impl Fn(&mut StoreContextMut<'_, CallStore>, &[Val], &mut [Val]) -> Done
    + Send
    + Sync
    + 'static,
) -> Done {
    place.func_new(part, move |mut store, _, params, results| {
        work(&mut store, params, results)?;
        params
            .iter()
            .try_for_each(|param| give_back(&mut store, param))
    })
}

fn give_back(store: &mut StoreContextMut<'_, CallStore>, param: &Val) -> Done {
    match param {
        Val::Resource(handle) => handle.resource_drop(&mut *store),
        Val::List(all) => all
            .iter()
            .filter(|part| matches!(part, Val::Resource(_)))
            .try_for_each(|part| give_back(store, part)),
        _ => Ok(()),
    }
}

fn gives(place: &mut LinkerInstance<'_, CallStore>, part: &str, value: Val) -> Done {
    defines(place, part, move |_, _, results| {
        answer(results, value.clone())
    })
}

fn denies(
    place: &mut LinkerInstance<'_, CallStore>,
    interface: &str,
    part: &str,
    why: &'static str,
) -> Done {
    let name = format!("{interface}#{part}");
    defines(place, part, move |_, _, _| {
        Err(wasmtime::Error::msg(format!("called {name}: {why}")))
    })
}

fn answer(results: &mut [Val], value: Val) -> Done {
    match results {
        [result] => {
            *result = value;
            Ok(())
        }
        _ => Err(wasmtime::Error::msg(
            "a function of WASI with another number of results",
        )),
    }
}

fn stream<T: Send + Sync + 'static>(place: &mut LinkerInstance<'_, CallStore>, part: &str) -> Done {
    defines(place, part, |store, _, results| {
        let handle = Resource::<T>::new_own(0).try_into_resource_any(&mut *store)?;
        answer(results, Val::Resource(handle))
    })
}

fn streams(place: &mut LinkerInstance<'_, CallStore>, interface: &str, part: &str) -> Done {
    let ok = |value: Option<Val>| Val::Result(Ok(value.map(Box::new)));
    match part {
        "[method]output-stream.check-write" => gives(place, part, ok(Some(Val::U64(ROOM)))),
        "[method]output-stream.write" | "[method]output-stream.blocking-write-and-flush" => {
            defines(place, part, move |store, params, results| {
                if let [_, Val::List(bytes)] = params {
                    let bytes = bytes.iter().filter_map(|byte| match byte {
                        Val::U8(byte) => Some(*byte),
                        _ => None,
                    });
                    let bytes: Vec<u8> = bytes.collect();
                    store.data_mut().append_output(&bytes);
                }
                answer(results, Val::Result(Ok(None)))
            })
        }
        "[method]output-stream.flush" | "[method]output-stream.blocking-flush" => {
            gives(place, part, ok(None))
        }
        "[method]input-stream.read" | "[method]input-stream.blocking-read" => {
            let closed = Val::Variant("closed".to_owned(), None);
            gives(place, part, Val::Result(Err(Some(Box::new(closed)))))
        }
        "[method]output-stream.subscribe" | "[method]input-stream.subscribe" => {
            stream::<Unavailable>(place, part)
        }
        _ => denies(place, interface, part, "plugins do not have that"),
    }
}

fn poll(place: &mut LinkerInstance<'_, CallStore>, part: &str) -> Done {
    defines(place, part, |_, params, results| {
        let waited_for = match params {
            [Val::List(all)] => u32::try_from(all.len())?,
            _ => 0,
        };
        answer(results, Val::List((0..waited_for).map(Val::U32).collect()))
    })
}

fn random(place: &mut LinkerInstance<'_, CallStore>, part: &str) -> Done {
    let eight = |store: &mut StoreContextMut<'_, CallStore>| {
        let mut bytes = [0; 8];
        store.data_mut().fill(&mut bytes);
        Val::U64(u64::from_le_bytes(bytes))
    };
    match part {
        "get-random-bytes" | "get-insecure-random-bytes" => {
            defines(place, part, |store, params, results| {
                let wanted = match params {
                    [Val::U64(wanted)] if *wanted <= MOST_RANDOM => *wanted,
                    _ => {
                        return Err(wasmtime::Error::msg(
                            "it asked for more than a MiB of random bytes",
                        ));
                    }
                };
                let mut bytes = vec![0; usize::try_from(wanted)?];
                store.data_mut().fill(&mut bytes);
                answer(results, Val::List(bytes.into_iter().map(Val::U8).collect()))
            })
        }
        "insecure-seed" => defines(place, part, move |store, _, results| {
            let seed = vec![eight(store), eight(store)];
            answer(results, Val::Tuple(seed))
        }),
        _ => defines(place, part, move |store, _, results| {
            let word = eight(store);
            answer(results, word)
        }),
    }
}

fn clock(place: &mut LinkerInstance<'_, CallStore>, interface: &str, part: &str) -> Done {
    const SECOND: u64 = 1_000_000_000;
    let is_wall = interface == "wasi:clocks/wall-clock";
    let is_now = part == "now";
    defines(place, part, move |store, _, results| {
        let now = match &store.data().grants.clock {
            Some(clock) if is_now => clock(),
            _ => 1,
        };
        let nanoseconds = u32::try_from(now % SECOND)?;
        let value = match is_wall {
            true => Val::Record(vec![
                ("seconds".to_owned(), Val::U64(now / SECOND)),
                ("nanoseconds".to_owned(), Val::U32(nanoseconds)),
            ]),
            false => Val::U64(now),
        };
        answer(results, value)
    })
}
