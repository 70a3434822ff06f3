//! The section `[telemetry]` of the scheduler's configuration.

use serde::{Deserialize, Serialize};

ebbtide_model::settings! {
    /// Where traces go. Without an endpoint there are none.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct TelemetrySettings: Default {
        /// Where spans are sent by OTLP over gRPC, `http://HOST:PORT` or `https://HOST:PORT` (with
        /// the system's roots). Not set: no traces. The same in the agents' files, or a trace ends
        /// at the notice.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub otlp_endpoint: Option<String> = None => key("http://127.0.0.1:4317");
        /// Share of the requests that are traced. A caller that sends a `traceparent` decides for
        /// its request.
        pub sample: f64 = 1.0 => key("0.01").range(0.0..=1.0);
    }
}
