//! The event stream of a region.

use crate::Region;
use ebbtide_proto::v1::{self, watch_event::Event};
use tonic::Streaming;

/// The event stream of a project, if it can be had.
#[derive(Debug)]
pub struct Events(Streaming<v1::WatchEvent>);

impl Events {
    /// Opens the stream; `None` if the region does not give one (polling does it alone then).
    pub async fn open(region: &Region, project: &str) -> Option<Self> {
        let request = v1::WatchRequest {
            project_id: project.to_owned(),
        };
        let answer = region.scheduler.clone().watch(request).await.ok()?;
        Some(Self(answer.into_inner()))
    }

    /// The next event; `None` once the stream has ended, however it did.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.0.message().await {
                Ok(Some(v1::WatchEvent {
                    event: Some(event), ..
                })) => return Some(event),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return None,
            }
        }
    }
}
