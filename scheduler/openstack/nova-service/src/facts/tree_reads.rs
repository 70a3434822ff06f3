//! What servers hold of the providers below hosts and of sharing providers: read before a request
//! is placed into trees of providers.

use super::placement::Providers;
use ebbtide_openstack::OpenStackError;
use futures::StreamExt as _;
use uuid::Uuid;

/// Providers that a request reads in parallel.
const AT_ONCE: usize = 8;

impl Providers {
    /// Reads providers whole and what each of their consumers holds.
    pub(crate) async fn read_trees(&self, providers: Vec<Uuid>) {
        let reads = futures::stream::iter(providers).map(|provider| async move {
            // Its consumers are counted as read: no own write may fall in between.
            let _turn = self.lock_for_look(provider).await;
            if self.read_whole(provider).await?.is_some() {
                let (generation, consumers) = self.consumers(provider).await?;
                self.write(|cloud| cloud.consumers_of(provider, generation, &consumers));
            }
            Ok::<_, OpenStackError>(())
        });
        let mut reads = reads.buffer_unordered(AT_ONCE);
        while let Some(read) = reads.next().await {
            if let Err(error) = read {
                // Hosts of which something is unknown are not considered.
                tracing::debug!(code = error.code(), "{error}");
            }
        }
    }
}
