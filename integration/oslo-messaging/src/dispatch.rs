//! Which endpoint gets a request (oslo_messaging/rpc/dispatcher.py, `RPCDispatcher.dispatch`).

use std::sync::Arc;

use serde_json::Value;

use crate::{Endpoint, EndpointTarget, HandlerFuture, IncomingCall, RemoteError, RpcVersion};

/// The version of a request that names none.
const DEFAULT_VERSION: &str = "1.0";

/// The endpoints of a server, in the order in which they are asked.
pub(crate) struct Dispatcher {
    endpoints: Vec<Arc<dyn Endpoint>>,
}

/// An endpoint, and the version in which it is to be called.
pub(crate) struct DispatchTarget<'a> {
    pub(crate) endpoint: &'a Arc<dyn Endpoint>,
    pub(crate) version: RpcVersion,
}

impl Dispatcher {
    pub(crate) fn new(mut endpoints: Vec<Arc<dyn Endpoint>>, ping: bool) -> Self {
        if ping {
            endpoints.push(Arc::new(PingEndpoint));
        }
        Self { endpoints }
    }

    /// Finds the endpoint, or says what the caller is told instead.
    ///
    /// `version` is the request's as it is written. An unreadable one is unsupported; Python
    /// answers a `ValueError`.
    pub(crate) fn find(
        &self,
        namespace: Option<&str>,
        version: Option<&str>,
        method: &str,
    ) -> Result<DispatchTarget<'_>, RemoteError> {
        let text = version.unwrap_or(DEFAULT_VERSION);
        let unsupported = || RemoteError::unsupported_version(text, method);
        let version: RpcVersion = text.parse().map_err(|_| unsupported())?;
        let mut found_compatible = false;
        for endpoint in &self.endpoints {
            let target = endpoint.target();
            if target.namespace.as_deref() != namespace || !target.version.understands(version) {
                continue;
            }
            if endpoint.methods().contains(&method) && !method.starts_with('_') {
                return Ok(DispatchTarget { endpoint, version });
            }
            found_compatible = true;
        }
        Err(if found_compatible {
            RemoteError::no_such_method(method)
        } else {
            unsupported()
        })
    }
}

/// Answers `oslo_rpc_server_ping`, which `[DEFAULT] rpc_ping_enabled` switches on.
struct PingEndpoint;

impl Endpoint for PingEndpoint {
    fn target(&self) -> EndpointTarget {
        EndpointTarget::version(1, 0)
    }

    fn methods(&self) -> &[&str] {
        &["oslo_rpc_server_ping"]
    }

    fn handle(&self, _: IncomingCall) -> HandlerFuture<'_> {
        Box::pin(async move { Ok(Value::String("pong".to_owned())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake(EndpointTarget, &'static [&'static str]);

    impl Endpoint for Fake {
        fn target(&self) -> EndpointTarget {
            self.0.clone()
        }
        fn methods(&self) -> &[&str] {
            self.1
        }
        fn handle(&self, _: IncomingCall) -> HandlerFuture<'_> {
            Box::pin(async { Ok(Value::Null) })
        }
    }

    /// The endpoints of nova-scheduler.
    fn scheduler(ping: bool) -> Dispatcher {
        Dispatcher::new(
            vec![
                Arc::new(Fake(
                    EndpointTarget::version(4, 5),
                    &["select_destinations", "_private"],
                )),
                Arc::new(Fake(
                    EndpointTarget::version(1, 1).namespace("baseapi"),
                    &["ping", "get_backdoor_port"],
                )),
            ],
            ping,
        )
    }

    fn class(
        dispatcher: &Dispatcher,
        namespace: Option<&str>,
        version: Option<&str>,
        method: &str,
    ) -> String {
        match dispatcher.find(namespace, version, method) {
            Ok(found) => format!("{} {method}", found.endpoint.target().version),
            Err(error) => error.class,
        }
    }

    #[test]
    fn requests_go_where_pythons_dispatcher_sends_them() {
        let (off, on) = (scheduler(false), scheduler(true));
        let cases = [
            (
                &off,
                None,
                Some("4.5"),
                "select_destinations",
                "4.5 select_destinations",
            ),
            (
                &off,
                None,
                Some("4.0"),
                "select_destinations",
                "4.5 select_destinations",
            ),
            (&off, Some("baseapi"), Some("1.0"), "ping", "1.1 ping"),
            (
                &off,
                Some("baseapi"),
                Some("1.1"),
                "get_backdoor_port",
                "1.1 get_backdoor_port",
            ),
            (
                &off,
                None,
                Some("4.99"),
                "select_destinations",
                "UnsupportedVersion",
            ),
            (
                &off,
                None,
                Some("5.0"),
                "select_destinations",
                "UnsupportedVersion",
            ),
            (
                &off,
                None,
                None,
                "select_destinations",
                "UnsupportedVersion",
            ),
            (
                &off,
                Some("other"),
                Some("4.5"),
                "select_destinations",
                "UnsupportedVersion",
            ),
            (
                &off,
                None,
                Some("four"),
                "select_destinations",
                "UnsupportedVersion",
            ),
            (&off, None, Some("4.5"), "no_such_method", "NoSuchMethod"),
            (&off, None, Some("4.5"), "_private", "NoSuchMethod"),
            (
                &off,
                None,
                Some("1.0"),
                "oslo_rpc_server_ping",
                "UnsupportedVersion",
            ),
            (
                &on,
                None,
                Some("1.0"),
                "oslo_rpc_server_ping",
                "1.0 oslo_rpc_server_ping",
            ),
            (
                &on,
                None,
                None,
                "oslo_rpc_server_ping",
                "1.0 oslo_rpc_server_ping",
            ),
        ];
        for (dispatcher, namespace, version, method, expected) in cases {
            assert_eq!(
                class(dispatcher, namespace, version, method),
                expected,
                "{namespace:?} {version:?} {method}"
            );
        }
    }

    #[test]
    fn the_first_endpoint_that_fits_and_has_the_method_is_taken() {
        let dispatcher = Dispatcher::new(
            vec![
                Arc::new(Fake(EndpointTarget::version(2, 0), &["a"])),
                Arc::new(Fake(EndpointTarget::version(2, 7), &["a", "b"])),
            ],
            false,
        );
        assert_eq!(class(&dispatcher, None, Some("2.0"), "a"), "2.0 a");
        assert_eq!(class(&dispatcher, None, Some("2.5"), "a"), "2.7 a");
        assert_eq!(class(&dispatcher, None, Some("2.0"), "b"), "2.7 b");
    }
}
