//! Grace periods that are polled: liburcu 0.14's `start_poll_synchronize_rcu`.
