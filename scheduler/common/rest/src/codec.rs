//! The codec of calls whose messages are known by their descriptors only.

use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Encodes any message, and decodes answers of one type.
#[derive(Debug, Clone)]
pub(crate) struct DynamicCodec {
    pub(crate) answer: MessageDescriptor,
}

impl Codec for DynamicCodec {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = DynamicEncoder;
    type Decoder = Self;

    fn encoder(&mut self) -> DynamicEncoder {
        DynamicEncoder
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

/// Encodes any message.
#[derive(Debug)]
pub(crate) struct DynamicEncoder;

impl Encoder for DynamicEncoder {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, item: DynamicMessage, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(to)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for DynamicCodec {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        DynamicMessage::decode(self.answer.clone(), from)
            .map(Some)
            .map_err(|error| Status::internal(error.to_string()))
    }
}
