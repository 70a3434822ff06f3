//! REST/JSON: transcoding and the OpenAPI document.

mod openapi;
mod transcoding;
