//! How calls travel: over one connection, each with the token.

use crate::credentials::{Bearer, Proof, TokenIssuer};
use http_body_util::{BodyExt as _, Full};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::{Service, StdError, http};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Status};

/// A connection whose calls carry the token, if there is one.
///
/// A token that was issued by Keystone may be refused before its end. The call is made once more
/// then, with a new one. That is safe: the gate refuses a call before it reads the request.
#[derive(Debug, Clone)]
pub struct RegionChannel {
    channel: Channel,
    token: Bearer,
}

impl RegionChannel {
    pub(crate) fn new(channel: Channel, token: Bearer) -> Self {
        Self { channel, token }
    }
}

type Call = http::Request<Body>;
type Answer = Result<http::Response<Body>, StdError>;

impl Service<Call> for RegionChannel {
    type Response = http::Response<Body>;
    type Error = StdError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        self.channel.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Call) -> Self::Future {
        // The one that is ready has to make the call.
        let next = self.channel.clone();
        let mut channel = std::mem::replace(&mut self.channel, next);
        match &self.token.0 {
            Some(Proof::Issued(issuer)) => {
                let issuer = std::sync::Arc::clone(issuer);
                Box::pin(async move { issued(channel, issuer.as_ref(), request).await })
            }
            fixed => {
                if let Some(Proof::Fixed(value)) = fixed {
                    put(&mut request, value);
                }
                Box::pin(async move { Ok(channel.call(request).await?) })
            }
        }
    }
}

async fn issued(mut channel: Channel, issuer: &dyn TokenIssuer, request: Call) -> Answer {
    let (parts, body) = request.into_parts();
    // All calls have one message, so the body ends.
    let body = body.collect().await?.to_bytes();
    let with = |value: &MetadataValue<Ascii>| {
        let body = Body::new(Full::new(body.clone()));
        let mut request = http::Request::from_parts(parts.clone(), body);
        put(&mut request, value);
        request
    };
    let token = issuer.token(None).await?;
    let response = channel.call(with(&header(&token)?)).await?;
    if Status::from_header_map(response.headers())
        .is_none_or(|status| status.code() != Code::Unauthenticated)
    {
        return Ok(response);
    }
    let renewed = issuer.token(Some(&token)).await?;
    if renewed == token {
        return Ok(response);
    }
    std::future::poll_fn(|context| channel.poll_ready(context)).await?;
    Ok(channel.call(with(&header(&renewed)?)).await?)
}

fn header(token: &str) -> Result<MetadataValue<Ascii>, Status> {
    Bearer::value(token).map_err(|error| Status::unauthenticated(error.to_string()))
}

fn put(request: &mut Call, value: &MetadataValue<Ascii>) {
    if let Ok(mut header) = http::HeaderValue::from_bytes(value.as_bytes()) {
        // Kept out of logs and of the compression's memory (RFC 7541, section 7.1.3).
        header.set_sensitive(true);
        request.headers_mut().insert("authorization", header);
    }
}
