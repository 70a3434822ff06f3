//! Private RabbitMQ, MariaDB and PostgreSQL, and whole regions, for tests and the devstack
