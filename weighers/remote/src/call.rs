//! One call.

use crate::service::words;
use crate::{PluginSettings, RemoteError, ServiceLimits, thread};
use ebbtide_proto::MAX_MESSAGE_BYTES;
use ebbtide_proto::plugin::v1::Numbers;
use ebbtide_proto::plugin::v1::plugin_client::PluginClient;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

/// A plugin of a service, ready to be asked.
#[derive(Debug)]
pub(crate) struct Callee {
    handle: &'static Handle,
    client: PluginClient<Channel>,
    plugin: String,
    settings: HashMap<String, String>,
    limits: ServiceLimits,
    places: Arc<Semaphore>,
}

impl Callee {
    pub(crate) fn new(
        channel: Channel,
        plugin: &str,
        settings: &PluginSettings,
        limits: ServiceLimits,
    ) -> Result<Self, RemoteError> {
        let client = PluginClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self {
            handle: thread::handle()?,
            client,
            plugin: plugin.to_owned(),
            settings: settings.clone().into_iter().collect(),
            limits,
            places: Arc::new(Semaphore::new(limits.in_flight)),
        })
    }

    pub(crate) fn plugin(&self) -> &str {
        &self.plugin
    }

    pub(crate) fn settings(&self) -> HashMap<String, String> {
        self.settings.clone()
    }

    /// Asks, with so much patience. When that ends the call is given up on both sides.
    pub(crate) fn call_with_deadline<Q: Send + 'static, A: Send + 'static, F>(
        &self,
        patience: Duration,
        call: impl FnOnce(PluginClient<Channel>, Q) -> F + Send + 'static,
        question: Q,
    ) -> Result<A, Status>
    where
        F: Future<Output = Result<Response<A>, Status>> + Send,
    {
        let client = self.client.clone();
        let answered = thread::wait_for(self.handle, async move {
            tokio::time::timeout(patience, call(client, question)).await
        });
        match answered {
            Some(Ok(answer)) => answer.map(Response::into_inner),
            Some(Err(_)) => Err(Status::deadline_exceeded(format!(
                "no answer within {} ms",
                patience.as_millis()
            ))),
            None => Err(Status::internal("the call ended without an answer")),
        }
    }

    /// Asks within the plugin's limits.
    pub(crate) fn ask<Q: Send + 'static, A: Send + 'static, F>(
        &self,
        call: impl FnOnce(PluginClient<Channel>, Q) -> F + Send + 'static,
        question: Q,
    ) -> Result<A, String>
    where
        F: Future<Output = Result<Response<A>, Status>> + Send,
    {
        let Ok(_place) = self.places.try_acquire() else {
            let many = self.limits.in_flight;
            return Err(format!("was not asked: {many} calls are under way already"));
        };
        let answered = self.call_with_deadline(self.limits.deadline, call, question);
        answered.map_err(|status| match status.code() {
            Code::DeadlineExceeded => format!("did not answer: {}", words(&status)),
            Code::Unavailable => format!("could not be reached: {}", words(&status)),
            code => format!("refused: {} ({code:?})", words(&status)),
        })
    }

    /// Asks for one number a row, within the plugin's limits.
    pub(crate) fn numbers<Q: Send + 'static, F>(
        &self,
        rows: usize,
        call: impl FnOnce(PluginClient<Channel>, Q) -> F + Send + 'static,
        question: Q,
    ) -> Result<Vec<f64>, String>
    where
        F: Future<Output = Result<Response<Numbers>, Status>> + Send,
    {
        let numbers = self.ask(call, question)?.numbers;
        match numbers.len() == rows {
            true => Ok(numbers),
            false => Err(format!("gave {} numbers for {rows} rows", numbers.len())),
        }
    }
}
