//! The message bus between scheduler and agents: AMQP through lapin, or in-process
