//! Nova's options that shape a decision, with Nova's defaults.

/// Options. Each field is named like Nova's option and holds Nova's default unless set.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// `[DEFAULT] service_down_time`, seconds.
    pub service_down_time: i64,
    /// `[filter_scheduler] enabled_filters`, class names.
    pub enabled_filters: Vec<String>,
    /// `[filter_scheduler] weight_classes`.
    pub weight_classes: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        let names = [
            "ComputeFilter",
            "ComputeCapabilitiesFilter",
            "ImagePropertiesFilter",
            "ServerGroupAntiAffinityFilter",
            "ServerGroupAffinityFilter",
        ];
        Self {
            service_down_time: 60,
            enabled_filters: names.map(str::to_owned).to_vec(),
            weight_classes: vec!["nova.scheduler.weights.all_weighers".to_owned()],
        }
    }
}
