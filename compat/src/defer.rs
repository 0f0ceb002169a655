//! `defer_rcu` and its kin.
