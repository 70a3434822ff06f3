//! Tests of the bus from outside: the conformance suite on both transports, and what only AMQP can
//! show.

// This is test code outside of `#[cfg(test)]`: it may panic, spawn and make up identifiers.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods
)]

mod amqp_alone;
mod amqp_faults;
mod amqp_login;
mod amqp_queues;
mod proxy;
mod suite;
mod support;
mod transports;

/// Makes one test for each member of the suite and each transport.
macro_rules! conformance {
    ($($name:ident),+ $(,)?) => {
        mod in_process_transport {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    crate::suite::$name(&crate::transports::InProcess::start().await).await;
                }
            )+
        }
        mod amqp_transport {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    crate::suite::$name(&crate::transports::Amqp::start().await).await;
                }
            )+
        }
    };
}

conformance!(
    a_message_arrives_as_it_was_sent,
    an_acked_message_never_comes_again,
    messages_come_in_the_order_in_which_one_task_sent_them,
    a_dropped_delivery_comes_again,
    a_retried_delivery_comes_again_before_those_behind_it,
    unsettled_deliveries_come_again_after_the_connection_broke,
    an_ack_on_a_broken_connection_does_nothing,
    a_subscription_holds_no_more_than_its_prefetch,
    publishing_to_a_missing_queue_is_an_error,
    a_dead_letter_keeps_body_id_type_reason_and_origin,
    a_dead_letter_can_itself_be_retried,
    concurrent_publishers_lose_nothing_and_keep_their_own_order,
    declaring_twice_changes_nothing,
    a_queue_is_deleted_with_its_messages_if_it_has_no_reader,
    messages_wait_for_a_reader_that_comes_later,
    cancelling_next_loses_nothing,
    a_delivery_outlives_its_subscription,
    closing_is_final_clean_and_idempotent,
    closing_one_bus_leaves_the_other_alone,
    closing_wakes_a_waiting_reader,
    regions_with_different_prefixes_do_not_meet,
    senseless_requests_are_refused,
    the_largest_body_and_the_empty_one_pass,
);
