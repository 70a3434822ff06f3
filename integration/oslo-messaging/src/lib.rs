//! oslo.messaging over RabbitMQ: RPC server and client, notifier, transport_url.
