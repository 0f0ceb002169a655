//! The queues and stacks, with C's signatures.
